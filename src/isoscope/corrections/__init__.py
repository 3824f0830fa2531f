"""Corrections: centre, scale, whiten, take directions out; scikit-learn transformers with torch inside."""

from isoscope.corrections.chain import Chain
from isoscope.corrections.clusterwise import ClusterCenter, ClusterwiseAllButTheTop
from isoscope.corrections.components import AllButTheTop
from isoscope.corrections.correction import Correction
from isoscope.corrections.files import load_correction, save_correction
from isoscope.corrections.product import ProductQuantizer
from isoscope.corrections.quantizer import Quantizer
from isoscope.corrections.rogue import RemoveDimensions
from isoscope.corrections.scalar import HalfPrecision, ScalarQuantizer
from isoscope.corrections.scaling import Center, Normalize, Standardize
from isoscope.corrections.signs import RaBitQuantizer, SignQuantizer
from isoscope.corrections.translate import Translate
from isoscope.corrections.truncate import Truncate
from isoscope.corrections.whiten import Whiten

__all__ = [
    "AllButTheTop",
    "Center",
    "Chain",
    "ClusterCenter",
    "ClusterwiseAllButTheTop",
    "Correction",
    "HalfPrecision",
    "Normalize",
    "ProductQuantizer",
    "Quantizer",
    "RaBitQuantizer",
    "RemoveDimensions",
    "ScalarQuantizer",
    "SignQuantizer",
    "Standardize",
    "Translate",
    "Truncate",
    "Whiten",
    "load_correction",
    "save_correction",
]
