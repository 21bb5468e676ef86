"""Files of an output: written whole, journalled, listed in a manifest. Formats are in `writers`."""
