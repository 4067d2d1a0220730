"""The checks, one file a part of a lecture. Every file here is searched for them; no list to keep."""
