/** The input rules of the NFT endpoints, as a table: which field, which rule, which complaint. */
import { ADDRESS_LENGTH } from '../../kernel/addresses.ts';
import { parseWhole } from '../../kernel/amounts.ts';
import { tryParseJson } from '../../kernel/json.ts';
import { type Complaint, nftRefusal } from './refusals.ts';

export const METADATA_MAX = 1000;
export const EXTRADATA_MAX = 500;

interface Rule {
  validation: string;
  holds(text: string): boolean;
}

const address: Rule = {
  validation: `length:${ADDRESS_LENGTH}`,
  holds: (text) => text.length === ADDRESS_LENGTH,
};
const integer: Rule = {
  validation: 'integer',
  holds: (text) => (parseWhole(text) ?? -1n) >= 0n,
};
const positive: Rule = {
  validation: 'above:0',
  holds: (text) => (parseWhole(text) ?? 1n) > 0n,
};
const boolean: Rule = { validation: 'boolean', holds: (text) => flagOf(text) !== undefined };
/** An empty text is allowed wherever JSON text is. */
const json: Rule = {
  validation: 'json',
  holds: (text) => text === '' || tryParseJson(text) !== undefined,
};
const max = (length: number): Rule => ({
  validation: `max:${length}`,
  holds: (text) => text.length <= length,
});

const RULES: Record<string, Rule[]> = {
  contractId: [integer],
  tokenId: [integer],
  tokenURI: [],
  toAddr: [address],
  fromAddr: [address],
  ownerAddr: [address],
  creatorAddr: [address],
  metaData: [json, max(METADATA_MAX)],
  extraData: [json, max(EXTRADATA_MAX)],
  isLocked: [boolean],
  valid: [boolean],
  page: [integer, positive],
  perPage: [integer, positive],
};

/** Fields that may be present and empty. */
const MAY_BE_EMPTY = new Set(['metaData', 'extraData']);

export interface Input {
  /** A required field, or one that is present. */
  text(field: string): string;
  /** The whole number of a required field, or of one that is present. */
  whole(field: string): bigint;
  /** The field, or undefined when it is absent or empty. */
  find(field: string): string | undefined;
}

/**
 * Checks every field at once.
 * @throws Refusal 400 with one complaint for each rule that is broken
 */
export function checkedInput(
  given: ReadonlyMap<string, string>,
  required: readonly string[],
  optional: readonly string[] = [],
): Input {
  const complaints: Complaint[] = [];
  for (const field of [...required, ...optional]) {
    const text = given.get(field);
    if (text === undefined || (text === '' && !MAY_BE_EMPTY.has(field))) {
      if (required.includes(field)) complaints.push(complaint(field, 'required'));
      continue;
    }
    for (const rule of RULES[field] ?? []) {
      if (!rule.holds(text)) complaints.push(complaint(field, rule.validation));
    }
  }
  if (complaints.length > 0) throw nftRefusal(400, ...complaints);
  return {
    text: (field) => given.get(field) ?? '',
    whole: (field) => parseWhole(given.get(field) ?? '') ?? 0n,
    find: (field) => given.get(field) || undefined,
  };
}

/** The boolean that a query value writes. */
export function flagOf(text: string): boolean | undefined {
  if (text === 'true' || text === '1') return true;
  return text === 'false' || text === '0' ? false : undefined;
}

function complaint(field: string, validation: string): Complaint {
  const rule = validation.split(':')[0] ?? validation;
  return { message: `${rule} validation failed on ${field}`, field, validation: rule };
}
