"""Distributions that everybody knows: nobody needs to be asked whether they exist."""

from __future__ import annotations

from codetape.states.distributions import DISTRIBUTIONS

_MORE = """
aiohttp altair arrow attrs babel bcrypt beautifulsoup4 black bokeh boto3 bottle celery certifi cffi
chardet charset-normalizer click colorama coverage cryptography cython dask django docutils duckdb
fastapi filelock flask fsspec gensim geopandas greenlet gunicorn h5py httpcore httpx hypothesis idna
imageio importlib-metadata jinja2 joblib jsonschema jupyter keras kiwisolver lightgbm loguru lxml
markdown markdown-it-py markupsafe matplotlib mock more-itertools msgpack mypy networkx nltk numba
numpy openpyxl orjson packaging pandas pandera paramiko patsy peewee pendulum pip platformdirs
plotly pluggy polars prettytable prompt-toolkit protobuf psutil psycopg pyarrow pycparser pydantic
pygments pymongo pymysql pyparsing pytest pytest-asyncio pytest-cov pytest-mock python-dateutil pytz
pyyaml rapidfuzz redis regex requests rich ruff scikit-learn scipy seaborn setuptools shapely six
sortedcontainers spacy sqlalchemy sqlite-utils starlette statsmodels sympy tabulate tenacity
tensorflow tomli toolz torch tornado tqdm typer typing-extensions tzdata urllib3 uvicorn virtualenv
werkzeug wheel wrapt xarray xgboost xlrd xlsxwriter yarl zipp
""".split()

POPULAR = frozenset(_MORE) | frozenset(DISTRIBUTIONS.values())
"""Names in their normalised form."""
