"""An outside user of kernelrules' low-level API."""
