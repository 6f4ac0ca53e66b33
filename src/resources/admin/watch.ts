/** A watch: a wallet, contract or token that is polled on request. */
import { address, count, digits, id, instant, nullable, oneOf, text } from '../fields.ts';
import { resource } from '../resource.ts';

const WATCH_KINDS = ['wallet', 'contract', 'token'] as const;
export type WatchKind = (typeof WATCH_KINDS)[number];

/** What a watch is about: the columns of a file of watches. */
const target = {
  kind: oneOf(WATCH_KINDS),
  addr: nullable(address()),
  contract_id: nullable(digits()),
  token_id: nullable(digits()),
};
export const TARGET_COLUMNS = Object.keys(target) as (keyof typeof target)[];

export const watch = resource('Watch', {
  id: id('wat'),
  ...target,
  created_at: instant(undefined, { title: 'Since' }),
  created_by: text(undefined, { title: 'By' }),
});

export const observationAge = {
  observation_age_max_ms: count(
    'The longest time between two polls of a steady target at the present budget',
  ),
};
