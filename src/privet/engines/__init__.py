"""The same sums out of core and on clusters: rows are encoded once, then only coefficients and integers travel."""

from privet.engines.cache import Cache
from privet.engines.engine import Engine, Stream
from privet.engines.files import Files
from privet.engines.part import Part
from privet.engines.parted_glm import parted_glm
from privet.engines.spark_engine import SparkEngine

__all__ = ["Cache", "Engine", "Files", "Part", "SparkEngine", "Stream", "parted_glm"]
