"""`robustgen report`: one page about a finished set."""
