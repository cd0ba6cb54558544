"""The front door: public names, agents, command line, testing kit."""
