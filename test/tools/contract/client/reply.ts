/**
 * A response parsed without loss: numbers keep their spelling, so that `1`, `1.0` and `"1"` differ
 * and integers beyond 2^53 are exact.
 */
import { NotHeld } from '../statement.ts';

/** Node 24 hands the source text of a number to the reviver; TypeScript's library does not yet. */
const exact = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): Written;
};

const TIME = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]) ([01]\d|2[0-3]):[0-5]\d:[0-5]\d$/;

/** A JSON number by its spelling. */
class WrittenNumber {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

type Written = null | boolean | string | WrittenNumber | Written[] | { [name: string]: Written };

export interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** Undefined when the text is not JSON. */
  body: Written | undefined;
  top: JsonField;
  /**
   * The record of an authorization response: the body, or its data where the service wraps records
   * in the success envelope. The interface allows both.
   */
  record: JsonField;
  /** The response in one line without secrets, for messages. */
  summary: string;
}

export function replyOf(status: number, headers: Reply['headers'], text: string): Reply {
  const body = parsed(text);
  const summary = `HTTP ${status} ${masked(text).slice(0, 400)}`;
  const top = new JsonField(body, 'the body', summary);
  const record = top.at('data').isObject ? top.at('data') : top;
  return { status, headers, text, body, summary, top, record };
}

function parsed(text: string): Written | undefined {
  try {
    return exact.parse(text, (_name, value, { source }) =>
      typeof value === 'number' ? new WrittenNumber(source ?? String(value)) : value,
    );
  } catch {
    return undefined;
  }
}

function masked(text: string): string {
  return text.replace(/("(?:access|refresh)_token"\s*:\s*")[^"]*/g, '$1…').replace(/\s+/g, ' ');
}

/** A value in a response. Reading it as another type throws NotHeld. */
export class JsonField {
  readonly #value: Written | undefined;
  readonly #path: string;
  readonly summary: string;

  constructor(value: Written | undefined, path: string, summary: string) {
    this.#value = value;
    this.#path = path;
    this.summary = summary;
  }

  /** The member with that name, present or not. */
  at(name: string): JsonField {
    const members = isObject(this.#value) ? this.#value : {};
    const value = Object.hasOwn(members, name) ? members[name] : undefined;
    return new JsonField(
      value,
      this.#path === 'the body' ? name : `${this.#path}.${name}`,
      this.summary,
    );
  }

  get present(): boolean {
    return this.#value !== undefined;
  }

  get isNull(): boolean {
    return this.#value === null;
  }

  get isObject(): boolean {
    return isObject(this.#value);
  }

  integer(name?: string): bigint {
    if (name !== undefined) return this.at(name).integer();
    const value = this.#value;
    if (value instanceof WrittenNumber && /^-?\d+$/.test(value.source)) return BigInt(value.source);
    throw this.#is('a JSON integer');
  }

  /** @param length in characters, when the interface names it */
  text(name?: string, length?: number): string {
    if (name !== undefined) return this.at(name).text(undefined, length);
    const value = this.#value;
    if (typeof value !== 'string') throw this.#is('a string');
    if (length === undefined || value.length === length) return value;
    throw this.#is(`a string of ${length} characters (it has ${value.length})`);
  }

  /** A timestamp without a time zone, as text. */
  time(name: string): string {
    const text = this.text(name);
    if (TIME.test(text)) return text;
    throw this.at(name).#is('written YYYY-MM-DD HH:MM:SS');
  }

  flag(name: string): boolean {
    const place = this.at(name);
    if (typeof place.#value === 'boolean') return place.#value;
    throw place.#is('a boolean');
  }

  object(name: string): JsonField {
    const place = this.at(name);
    if (isObject(place.#value)) return place;
    throw place.#is('an object');
  }

  list(name: string): JsonField[] {
    const place = this.at(name);
    const { summary } = this;
    if (!Array.isArray(place.#value)) throw place.#is('an array');
    return place.#value.map((value, n) => new JsonField(value, `${place.#path}[${n}]`, summary));
  }

  #is(expected: string): NotHeld {
    const value = this.#value;
    const seen = value instanceof WrittenNumber ? value.source : JSON.stringify(value);
    const is = value === undefined ? 'is missing' : `is ${masked(seen ?? '').slice(0, 120)}`;
    return new NotHeld(
      `${this.#path} should be ${expected} and ${is}; the response: ${this.summary}`,
    );
  }
}

function isObject(value: Written | undefined): value is { [name: string]: Written } {
  const plain = typeof value === 'object' && value !== null && !Array.isArray(value);
  return plain && !(value instanceof WrittenNumber);
}
