"""The engine: ports, codec and the loop that reconciles what is wanted with what happened."""
