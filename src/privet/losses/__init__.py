"""Pointwise losses with derivative, curvature and proven constants; features, and L2 regularisation."""

from privet.losses.constants import gradient_bound, hessian_bound, prediction_bound
from privet.losses.custom import CustomLoss
from privet.losses.features import AppendOne, CustomFeatures, FeatureMap, RandomFourier, append_one
from privet.losses.hinge import HingeLoss, SmoothedHingeLoss
from privet.losses.huber import HuberLoss
from privet.losses.logistic import LogisticLoss
from privet.losses.lookup import loss_named
from privet.losses.loss import Loss
from privet.losses.multinomial import MultinomialLoss
from privet.losses.poisson import CappedPoissonLoss, PoissonLoss
from privet.losses.quantile import AbsoluteLoss, QuantileLoss, SmoothedQuantileLoss
from privet.losses.record_losses import LinearRecords, RecordLoss
from privet.losses.ridge import QuadraticPenalty, Ridge
from privet.losses.squared import SquaredLoss
from privet.losses.weighted import WeightedLoss

__all__ = [
    "AbsoluteLoss",
    "AppendOne",
    "CappedPoissonLoss",
    "CustomFeatures",
    "CustomLoss",
    "FeatureMap",
    "HingeLoss",
    "HuberLoss",
    "LinearRecords",
    "LogisticLoss",
    "Loss",
    "MultinomialLoss",
    "PoissonLoss",
    "QuadraticPenalty",
    "QuantileLoss",
    "RandomFourier",
    "RecordLoss",
    "Ridge",
    "SmoothedHingeLoss",
    "SmoothedQuantileLoss",
    "SquaredLoss",
    "WeightedLoss",
    "append_one",
    "gradient_bound",
    "hessian_bound",
    "loss_named",
    "prediction_bound",
]
