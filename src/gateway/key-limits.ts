/**
 * The limits of keys, applied to writes. A service may match names without case, split forms at
 * semicolons, or take the last of two equal names, so a key with limits may only send what every
 * parser reads alike: the documented members of the write, as they are written there, each once.
 * Pure.
 */
import { Failure } from '../kernel/errors.ts';
import { isObject, type Json, tryParseJson } from '../kernel/json.ts';
import { checkLimits } from '../keys/keys.ts';
import type { KeyLimits } from '../resources/admin/key.ts';
import { isJson, membersOf, type Request, textOf, type WriteRoute } from './routes.ts';

/** @throws Failure `member_not_allowed`, `key_limit` */
export function checkKeyLimits(
  limits: KeyLimits | undefined,
  request: Request,
  { kind, fields }: WriteRoute,
): void {
  if (!limits) return;
  // The members of another write are not known; limits of operators and amounts refuse it.
  const members = membersOf(request);
  if (members) checkMembers(request, members);
  const { operationNo = null, amount = null, feeAmount = null } = fields;
  checkLimits(limits, { kind, operationNo, amount, feeAmount });
}

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = /^(application|text)\/([a-z0-9.-]+\+)?json$/;
const NAME_MAX = 100;

type Part = 'headers' | 'query' | 'body';

/** @throws Failure `member_not_allowed` with the `part` of the request and, if any, its `member` */
export function checkMembers(request: Request, members: readonly string[]): void {
  const [parameter] = pairsOf(request.query.slice(1), 'query');
  if (parameter) throw refused('query', 'this write has no query', parameter.name);
  const seen = new Set<string>();
  for (const { name, value } of pairsInBody(request)) {
    if (!members.includes(name)) throw refused('body', 'it is no member of this write', name);
    if (seen.has(name)) throw refused('body', 'it is repeated', name);
    if (typeof value === 'object' && value !== null)
      throw refused('body', 'its value must be text or a number', name);
    seen.add(name);
  }
}

interface Pair {
  /** Decoded. */
  name: string;
  value?: Json | undefined;
}

/** @throws Failure `member_not_allowed` when two parsers could read the body differently */
function pairsInBody(request: Request): Pair[] {
  const { type, hasOtherCharset } = mediaTypeOf(request.contentType);
  if (hasOtherCharset) throw refused('headers', 'send UTF-8', 'content-type');
  const text = textOf(request.body);
  // Also refuses a byte order mark.
  if (!Buffer.from(text).equals(request.body)) throw refused('body', 'the body is not UTF-8');
  if (isJson(request)) {
    // As a form it would have further members.
    if (!JSON_TYPE.test(type ?? '') && /[&;]/.test(text))
      throw refused('headers', 'send application/json', 'content-type');
    return membersInJson(text);
  }
  // Another type is not certain to be parsed as a form.
  if (![undefined, FORM].includes(type))
    throw refused('headers', `send application/json or ${FORM}`, 'content-type');
  if (tryParseJson(text) !== undefined) throw refused('body', 'the body is no JSON object');
  return pairsOf(text, 'body');
}

/** The pairs of a form. @throws Failure `member_not_allowed` for a `;`, which may separate pairs */
function pairsOf(form: string, part: Part): Pair[] {
  return form
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      // A question mark at the begin would be dropped.
      const [name = ''] = new URLSearchParams(`&${pair}`).keys();
      if (pair.includes(';')) throw refused(part, 'write ; as %3B', name);
      return { name };
    });
}

function mediaTypeOf(contentType: string | undefined) {
  const [type, ...parameters] = (contentType ?? '').toLowerCase().split(';');
  const charsets = parameters.map((text) => /^\s*charset\s*=\s*"?([^"\s]*)/.exec(text)?.[1]);
  const hasOtherCharset = charsets.some(
    (name) => name !== undefined && !/^(utf-?8|us-ascii)$/.test(name),
  );
  return { type: type?.trim() || undefined, hasOtherCharset };
}

/** The members of the outermost object, repeated ones too. @throws Failure `member_not_allowed` */
function membersInJson(text: string): Pair[] {
  const parsed = tryParseJson(text);
  // The quotes of valid JSON are paired, so the expression below runs in linear time.
  if (!isObject(parsed)) throw refused('body', 'the body is no JSON object');
  const pairs: Pair[] = [];
  let depth = 0;
  let last = '';
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:]/gs)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (token === ':' && depth === 1) {
      const name = String(tryParseJson(last));
      pairs.push({ name, value: parsed[name] });
    }
    last = token;
  }
  return pairs;
}

function refused(part: Part, why: string, name?: string): Failure {
  if (name === undefined) return new Failure('member_not_allowed', why, { part });
  const member = name.slice(0, NAME_MAX).toWellFormed();
  return new Failure('member_not_allowed', `${member}: ${why}`, { part, member });
}
