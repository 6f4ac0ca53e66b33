/** Validation of the inputs of the NFT endpoints: a table of fields and their rules. */
import { ADDRESS_LENGTH } from '../../kernel/addresses.ts';
import { parseWhole } from '../../kernel/amounts.ts';
import { tryParseJson } from '../../kernel/json.ts';
import { type FieldError, nftRefusal } from './errors.ts';

const METADATA_MAX = 1000;
const EXTRADATA_MAX = 500;

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
/** JSON text may be empty. */
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
  /** The text of a field; empty when it is absent. */
  text(field: string): string;
  /** The number of a field; 0 when it is absent. */
  whole(field: string): bigint;
  /** The field, or undefined when it is absent or empty. */
  find(field: string): string | undefined;
}

/**
 * Checks every field at once.
 * @throws Refusal 400 with one error for each rule that is broken
 */
export function checkedInput(
  fields: ReadonlyMap<string, string>,
  required: readonly string[],
  optional: readonly string[] = [],
): Input {
  const fieldErrors: FieldError[] = [];
  for (const field of [...required, ...optional]) {
    const text = fields.get(field);
    if (text === undefined || (text === '' && !MAY_BE_EMPTY.has(field))) {
      if (required.includes(field)) fieldErrors.push(fieldError(field, 'required'));
      continue;
    }
    for (const rule of RULES[field] ?? []) {
      if (!rule.holds(text)) fieldErrors.push(fieldError(field, rule.validation));
    }
  }
  if (fieldErrors.length > 0) throw nftRefusal(400, ...fieldErrors);
  return {
    text: (field) => fields.get(field) ?? '',
    whole: (field) => parseWhole(fields.get(field) ?? '') ?? 0n,
    find: (field) => fields.get(field) || undefined,
  };
}

/** Parses a boolean query value. */
export function flagOf(text: string): boolean | undefined {
  if (text === 'true' || text === '1') return true;
  return text === 'false' || text === '0' ? false : undefined;
}

function fieldError(field: string, validation: string): FieldError {
  const rule = validation.split(':')[0] ?? validation;
  return { message: `${rule} validation failed on ${field}`, field, validation: rule };
}
