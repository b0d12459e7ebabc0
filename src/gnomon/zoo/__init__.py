"""Little models that differ in their positional scheme only: one body, a recipe for each, training, and their weights."""

from gnomon.zoo.recipes import RECIPES, Recipe, Schedule, recipe_named

__all__ = ["RECIPES", "Recipe", "Schedule", "recipe_named"]
