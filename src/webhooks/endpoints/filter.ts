/**
 * The form of a filter: a query over the body of an event, in a part of the grammar of MongoDB.
 * Checked before it is stored, so that its evaluation is bounded. What it means is the function
 * `matches_filter` of ../../../drizzle/definitions/events.sql. Pure; errors name the place.
 */
import { Failure } from '../../kernel/errors.ts';
import { isObject, type Json, jsonText } from '../../kernel/json.ts';

type Filter = { [name: string]: Json };

const BYTES_MAX = 8_192;
const DEPTH_MAX = 8;
/** Plain values in all: each is one comparison. */
const VALUES_MAX = 200;
const LIST_MAX = 100;
const PATH_MAX = 200;
const TEXT_MAX = 1_000;
/** Of a path such as `data.current.balance`, and of any part that `data` of an event has. */
const PATH = /^[A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64}){0,9}$/;

const OPERATORS = '$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists or $not';

/** Counts the values of a filter while it is checked. */
interface Walk {
  values: number;
}

/**
 * @param filter as it was parsed from JSON
 * @throws Failure `invalid_request`
 */
export function checkFilter(filter: Json): void {
  if (!isObject(filter)) refuse('filter', 'must be an object such as {"data.addr": "0x…"}');
  // Checked before its size, for which its text is made: a deep one has no text.
  checkFilterAt(filter, 'filter', 1, { values: 0 });
  if (Buffer.byteLength(jsonText(filter)) > BYTES_MAX)
    refuse('filter', `may have at most ${BYTES_MAX} bytes`);
}

function checkFilterAt(filter: Filter, place: string, depth: number, walk: Walk): void {
  checkDepth(place, depth);
  for (const [name, condition] of Object.entries(filter)) {
    const at = `${place}.${shortened(name)}`;
    if (name === '$and' || name === '$or') checkFilters(condition, at, depth, walk);
    else if (name === '$not') checkFilterAt(objectAt(condition, at), at, depth + 1, walk);
    else if (name.startsWith('$'))
      refuse(at, 'is no operator here; there are $and, $or, $not and paths such as data.addr');
    else if (name.length > PATH_MAX || !PATH.test(name))
      refuse(at, 'must be a path such as data.addr: at most 10 names of a-z, A-Z, 0-9, _ and -');
    else checkCondition(condition, at, depth, walk);
  }
}

function checkFilters(list: Json, place: string, depth: number, walk: Walk): void {
  for (const [n, part] of listAt(list, place).entries())
    checkFilterAt(objectAt(part, `${place}[${n}]`), `${place}[${n}]`, depth + 1, walk);
}

function checkCondition(condition: Json, place: string, depth: number, walk: Walk): void {
  checkDepth(place, depth);
  if (!isObject(condition)) {
    checkPlain(condition, place, walk);
    return;
  }
  const operators = Object.entries(condition);
  if (operators.length === 0) refuse(place, `must be a plain value or have ${OPERATORS}`);
  for (const [operator, operand] of operators) {
    const at = `${place}.${shortened(operator)}`;
    if (operator === '$not') checkCondition(objectAt(operand, at), at, depth + 1, walk);
    else checkOperand(operator, operand, at, walk);
  }
}

const PLAIN = ['$eq', '$ne'];
const ORDERED = ['$gt', '$gte', '$lt', '$lte'];
const LISTED = ['$in', '$nin'];

function checkOperand(operator: string, operand: Json, place: string, walk: Walk): void {
  if (PLAIN.includes(operator)) {
    checkPlain(operand, place, walk);
  } else if (ORDERED.includes(operator)) {
    if (typeof operand !== 'number' && typeof operand !== 'string')
      refuse(place, 'must be a number or a text');
    checkPlain(operand, place, walk);
  } else if (LISTED.includes(operator)) {
    for (const [n, one] of listAt(operand, place).entries())
      checkPlain(one, `${place}[${n}]`, walk);
  } else if (operator !== '$exists') {
    refuse(place, `is no operator; there are ${OPERATORS}`);
  } else {
    if (typeof operand !== 'boolean') refuse(place, 'must be true or false');
    checkPlain(operand, place, walk);
  }
}

/** A value that jsonb holds exactly. */
function checkPlain(value: Json, place: string, walk: Walk): void {
  walk.values++;
  if (walk.values > VALUES_MAX) refuse('filter', `may have at most ${VALUES_MAX} values`);
  if (typeof value === 'object' && value !== null)
    refuse(place, 'must be a text, a number, true, false or null');
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    refuse(place, 'is too large for a JSON number; write it as a text in decimal digits');
  if (typeof value !== 'string') return;
  if (value.length > TEXT_MAX) refuse(place, `may have at most ${TEXT_MAX} characters`);
  if (value.includes('\0') || !value.isWellFormed())
    refuse(place, 'must be Unicode text without NUL');
}

function checkDepth(place: string, depth: number): void {
  if (depth > DEPTH_MAX) refuse(place, `is nested more than ${DEPTH_MAX} deep`);
}

function listAt(value: Json, place: string): readonly Json[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > LIST_MAX)
    refuse(place, `must be a list of 1 to ${LIST_MAX}`);
  return value;
}

function objectAt(value: Json, place: string): Filter {
  if (!isObject(value)) refuse(place, 'must be an object');
  return value;
}

function shortened(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name;
}

function refuse(place: string, problem: string): never {
  throw new Failure('invalid_request', `${place.slice(-300)} ${problem}`);
}
