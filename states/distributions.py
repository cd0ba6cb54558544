"""Imports whose distribution has another name, and names that say nothing of a distribution."""

DISTRIBUTIONS = {
    "absl": "absl-py",
    "apiclient": "google-api-python-client",
    "attr": "attrs",
    "azure.core": "azure-core",
    "azure.cosmos": "azure-cosmos",
    "azure.identity": "azure-identity",
    "azure.keyvault.secrets": "azure-keyvault-secrets",
    "azure.storage.blob": "azure-storage-blob",
    "azure.storage.queue": "azure-storage-queue",
    "Bio": "biopython",
    "bs4": "beautifulsoup4",
    "cairo": "pycairo",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "discord": "discord-py",
    "dns": "dnspython",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "gi": "pygobject",
    "git": "gitpython",
    "github": "pygithub",
    "google.api_core": "google-api-core",
    "google.auth": "google-auth",
    "google.cloud.bigquery": "google-cloud-bigquery",
    "google.cloud.firestore": "google-cloud-firestore",
    "google.cloud.pubsub": "google-cloud-pubsub",
    "google.cloud.storage": "google-cloud-storage",
    "google.generativeai": "google-generativeai",
    "google.oauth2": "google-auth",
    "google.protobuf": "protobuf",
    "googleapiclient": "google-api-python-client",
    "graphviz": "graphviz",
    "grpc": "grpcio",
    "igraph": "python-igraph",
    "imblearn": "imbalanced-learn",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "ldap": "python-ldap",
    "Levenshtein": "levenshtein",
    "lxml": "lxml",
    "magic": "python-magic",
    "markdown": "markdown",
    "matplotlib": "matplotlib",
    "mpl_toolkits": "matplotlib",
    "MySQLdb": "mysqlclient",
    "nacl": "pynacl",
    "OpenGL": "pyopengl",
    "OpenSSL": "pyopenssl",
    "osgeo": "gdal",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "pwiz": "peewee",
    "pylab": "matplotlib",
    "pythoncom": "pywin32",
    "pywt": "pywavelets",
    "rest_framework": "djangorestframework",
    "ruamel.yaml": "ruamel-yaml",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "snowflake.connector": "snowflake-connector-python",
    "socks": "pysocks",
    "speech_recognition": "speechrecognition",
    "telegram": "python-telegram-bot",
    "tls_client": "tls-client",
    "umap": "umap-learn",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "win32com": "pywin32",
    "wx": "wxpython",
    "Xlib": "python-xlib",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Import name, dotted where the first part is shared by many distributions, to distribution."""

NAMESPACES = frozenset(
    ["azure", "backports", "google", "jaraco", "ruamel", "snowflake", "sphinxcontrib", "zope"]
)
"""First parts that many distributions share; alone they are nobody's, or the wrong one's."""

GENERIC = frozenset(
    ["app", "common", "config", "helpers", "main", "models", "settings", "src", "tests", "utils"]
)
"""Names that a program gives its own files; who has them on an index is not who is meant."""

DECOYS = {
    "bs4": "beautifulsoup4",
    "crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "opencv-python": "opencv-python-headless",
    "pil": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Distribution names that are asked for by mistake, and what is meant.

Most belong to somebody else or to nobody. opencv-python is genuine but needs a display library that
no image has; the headless build is the same module without it.
"""
