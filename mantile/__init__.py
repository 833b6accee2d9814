"""Mantile: what an LLM deployment can really reach, as a workbook in which every number is a live formula."""
__version__ = "0.1.0"
