"""Vision-language models: a decoder in text_config beside a vision tower in vision_config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mantile.library.architecture import Architecture, Fact, Tower
from mantile.library.huggingface.config import Config, Uncovered


@dataclass(frozen=True)
class VisionFamily:
    """A model type whose config.json holds a decoder's beside a vision tower's.

    Args:
        decoders: model types that text_config may have, with the class defaults of fields it may leave out;
            the first is meant where text_config states no model type.
        tower: reads the tower, from the whole config and its vision_config.
        vision_type: model type of a vision_config that states none.
        top, head_prefix: prefixes of the decoder's tensors and of the LM head in checkpoints.
        flat: the decoder's fields may stand at the top level, without text_config.
        default_tower: a config without vision_config has a tower of class defaults.
        tied: class default of tie_word_embeddings of the whole; that of text_config decides nothing.
        text_ties: but where it is true.
    """

    decoders: Mapping[str, Mapping[str, int]]
    tower: Callable[[Config, Config], Tower]
    vision_type: str
    top: str = "model."
    head_prefix: str = ""
    flat: bool = False
    default_tower: bool = False
    tied: bool = False
    text_ties: bool = False

    def read(self, config: Config, read_decoder: Callable[[Config], Architecture]) -> Architecture:
        """The decoder with the tower beside it.

        Args:
            read_decoder: reads a decoder by the model type of its section.

        Raises:
            InputError: if a section is missing or wrong, or its model type is not one of this family.
        """
        section = self._decoder_section(config)
        decided = {"tie_word_embeddings": self._tie(config, section)}
        decoder = read_decoder(replace(section, decided=decided))
        tower = self.tower(config, self._tower_section(config))
        return decoder.model_copy(update={"vision": tower})

    def _tie(self, config: Config, section: Config) -> Fact:
        """Whether the embedding is the LM head too, as the class of the whole has it."""
        whole = config.flag("tie_word_embeddings", default=self.tied)
        if self.text_ties and not whole.value:
            of_text = section.flag("tie_word_embeddings", default=False)
            return of_text if of_text.value else whole
        return whole

    def _decoder_section(self, config: Config) -> Config:
        first = next(iter(self.decoders))
        if self.flat and not isinstance(config.data.get("text_config"), dict):
            return replace(config, model_type=first, outer_type=config.model_type)
        text = config.section("text_config", first)
        # Some files repeat the outer model type in text_config.
        model_type = first if text.model_type == config.model_type else text.model_type
        if model_type not in self.decoders:
            raise Uncovered(
                f"{config.name}: field text_config.model_type: expected one of {', '.join(self.decoders)} "
                f"inside {config.model_type}, found {model_type!r:.60}"
            )
        return replace(text, model_type=model_type, defaults=self.decoders[model_type])

    def _tower_section(self, config: Config) -> Config:
        if self.default_tower and config.data.get("vision_config") is None:
            return replace(
                config,
                model_type=self.vision_type,
                data={},
                path="vision_config.",
                outer_type=config.model_type,
            )
        return config.section("vision_config", self.vision_type)
