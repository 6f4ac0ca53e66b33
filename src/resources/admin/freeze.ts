/** A freeze: no write is accepted or sent until it is released. */
import { instant, nullable, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const freeze = resource('Freeze', {
  frozen_at: instant(),
  frozen_by: text(),
  reason: text(),
  released_at: nullable(instant()),
  released_by: nullable(text()),
  release_reason: nullable(text()),
});
