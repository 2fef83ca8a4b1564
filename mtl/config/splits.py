"""Settings of how rows are divided into what is trained on and what is scored."""

from typing import Self

from pydantic import Field, model_validator

from mtl.config.settings import Settings


class SplitSettings(Settings):
    """``kfold``: train and dev of each small task, taken together, are divided into so many folds (None: as they are).

    A run holds out the one numbered ``fold``, from 0, as its dev split and trains on the others; test is never touched.
    The folds are the same in every run and seed. A task of 10,000 examples or more, or with several dev splits, keeps
    its own. Runs that differ in seed and fold only are runs of one arm.
    """

    kfold: int | None = Field(default=None, ge=2, le=100)
    fold: int = Field(default=0, ge=0)

    @property
    def held_out(self) -> int | None:
        """The fold that is held out; None without folds."""
        return None if self.kfold is None else self.fold

    @model_validator(mode="after")
    def _one_of_the_folds(self) -> Self:
        if self.kfold is None and self.fold != 0:
            raise ValueError(f"splits.fold is {self.fold}, but splits.kfold is not set: set it to the number of folds")
        if self.kfold is not None and self.fold >= self.kfold:
            raise ValueError(f"splits.fold is {self.fold}, but {self.kfold} folds are numbered 0 to {self.kfold - 1}")
        return self
