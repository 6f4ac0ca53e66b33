/**
 * The limits of keys, applied to writes. The amount of an ambiguous request, which the service may
 * parse differently, counts as unknown. Pure.
 */
import { tryParseJson } from '../kernel/json.ts';
import { checkLimits, type KeyLimits } from '../keys/keys.ts';
import { isJson, type Request, textOf, type WriteRoute } from './routes.ts';

/** @throws Failure `key_limit` */
export function checkKeyLimits(
  limits: KeyLimits | undefined,
  request: Request,
  { kind, fields }: WriteRoute,
): void {
  if (!limits) return;
  const { operationNo = null, amount = null, feeAmount = null } = fields;
  const known = isAmbiguous(request) ? null : amount;
  checkLimits(limits, { kind, operationNo, amount: known, feeAmount });
}

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = /^(application|text)\/([a-z0-9.-]+\+)?json$/;
const LIMITED = ['amount', 'feeAmount'];

/**
 * True when two parsers could read different values: a repeated member, a body that is valid JSON
 * and a valid form, an amount in the query, a content encoding or an unusual charset.
 */
export function isAmbiguous(request: Request): boolean {
  const isEncoded = request.headers.some(([name]) => name === 'content-encoding');
  if (isEncoded || namesLimited(request.query)) return true;
  const { type, hasOtherCharset } = mediaTypeOf(request.contentType);
  if (hasOtherCharset) return true;
  const text = textOf(request.body);
  if (!isJson(request)) {
    // Only a form, or a body without a content type, is certain to be parsed as a form.
    if (![undefined, FORM].includes(type) || tryParseJson(text) !== undefined) return true;
    const names = [...new URLSearchParams(text).keys()];
    return new Set(names).size < names.length;
  }
  if (!JSON_TYPE.test(type ?? '') && namesLimited(text)) return true;
  return repeatsMember(text);
}

function namesLimited(form: string): boolean {
  const values = new URLSearchParams(form);
  return LIMITED.some((name) => values.has(name));
}

function mediaTypeOf(contentType: string | undefined) {
  const [type, ...parameters] = (contentType ?? '').toLowerCase().split(';');
  const charsets = parameters.map((text) => /^\s*charset\s*=\s*"?([^"\s]*)/.exec(text)?.[1]);
  const hasOtherCharset = charsets.some(
    (name) => name !== undefined && !/^(utf-?8|us-ascii)$/.test(name),
  );
  return { type: type?.trim() || undefined, hasOtherCharset };
}

/** True when the outermost object has a member twice, and for text that is not JSON. */
function repeatsMember(text: string): boolean {
  // The quotes of valid JSON are paired, so the expression below runs in linear time.
  if (tryParseJson(text) === undefined) return true;
  const names: string[] = [];
  let depth = 0;
  let last = '';
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:]/gs)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (token === ':' && depth === 1) names.push(String(tryParseJson(last)));
    last = token;
  }
  return new Set(names).size < names.length;
}
