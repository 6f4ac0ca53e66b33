/**
 * Whether a body may mean something else to the service than to us. Whoever limits amounts must not
 * believe one of two readings: in doubt there is none. Pure.
 */
import { tryParseJson } from '../kernel/json.ts';
import { isJson, type Request, textOf } from './routes.ts';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = /^(application|text)\/([a-z0-9.-]+\+)?json$/;
/** What limits look at; a form that names one of them says something about it. */
const LIMITED = ['amount', 'feeAmount'];

/**
 * True when two readers could find different values in a request: a member that stands in it
 * twice, a body that is JSON to one and a form to the other, a value in the query, packed or
 * foreign bytes.
 * @param query with its question mark, or empty
 * @param encoding the header `Content-Encoding`
 */
export function isAmbiguous(request: Request, query: string, encoding?: string): boolean {
  if (encoding !== undefined || namesLimited(query)) return true;
  const { type, foreign } = mediaTypeOf(request.contentType);
  if (foreign) return true;
  const text = textOf(request.body);
  if (!isJson(request)) {
    // As what else could it be read: only a form, or a body without a name, is read as one.
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

/** The media type in lower case; foreign: with a charset other than ours. */
function mediaTypeOf(contentType: string | undefined) {
  const [type, ...parameters] = (contentType ?? '').toLowerCase().split(';');
  const charsets = parameters.map((one) => /^\s*charset\s*=\s*"?([^"\s]*)/.exec(one)?.[1]);
  const foreign = charsets.some((name) => name !== undefined && !/^(utf-?8|us-ascii)$/.test(name));
  return { type: type?.trim() || undefined, foreign };
}

/** True for what is no JSON, too: it has no members that could be believed. */
function repeatsMember(text: string): boolean {
  // What is JSON has its quotes in pairs, so that this stays linear.
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
