/**
 * An answer as it was written: numbers keep their digits, so that `1`, `1.0` and `"1"` differ, and
 * an integer beyond 2^53 stays what it is.
 */
import { NotHeld } from './statement.ts';

/** Node 24 hands the source text of a number to the reviver; TypeScript's library does not yet. */
const exact = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): Written;
};

/** A number of JSON text, by its spelling. */
export class WrittenNumber {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

export type Written =
  | null
  | boolean
  | string
  | WrittenNumber
  | Written[]
  | { [name: string]: Written };

export interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** Undefined when the text is not JSON. */
  body: Written | undefined;
  /** The body, as a place whose members can be asked for. */
  top: Place;
  /**
   * The record of an authorization answer: the body itself, or its data where the service puts its
   * success envelope around records as well; the interface can be read in both ways.
   */
  record: Place;
  /** The answer in one line, without secrets, for sentences. */
  told: string;
}

/** Makes a reply of what came over the connection. */
export function replyOf(status: number, headers: Reply['headers'], text: string): Reply {
  const body = parsed(text);
  const told = `HTTP ${status} ${masked(text).slice(0, 400)}`;
  const top = new Place(body, 'the body', told);
  const record = top.at('data').isObject ? top.at('data') : top;
  return { status, headers, text, body, told, top, record };
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

/** A value within an answer. What it is asked for it is, or the statement does not hold. */
export class Place {
  readonly #value: Written | undefined;
  readonly #way: string;
  readonly told: string;

  constructor(value: Written | undefined, way: string, told: string) {
    this.#value = value;
    this.#way = way;
    this.told = told;
  }

  /** The member of that name, whether it is there or not. */
  at(name: string): Place {
    const members = isObject(this.#value) ? this.#value : {};
    const value = Object.hasOwn(members, name) ? members[name] : undefined;
    return new Place(value, this.#way === 'the body' ? name : `${this.#way}.${name}`, this.told);
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

  flag(name: string): boolean {
    const place = this.at(name);
    if (typeof place.#value === 'boolean') return place.#value;
    throw place.#is('a boolean');
  }

  object(name: string): Place {
    const place = this.at(name);
    if (isObject(place.#value)) return place;
    throw place.#is('an object');
  }

  list(name: string): Place[] {
    const place = this.at(name);
    const { told } = this;
    if (!Array.isArray(place.#value)) throw place.#is('an array');
    return place.#value.map((value, n) => new Place(value, `${place.#way}[${n}]`, told));
  }

  /** What the interface expects at this place, against what is there. */
  #is(expected: string): NotHeld {
    const value = this.#value;
    const seen = value instanceof WrittenNumber ? value.source : JSON.stringify(value);
    const is = value === undefined ? 'is missing' : `is ${masked(seen ?? '').slice(0, 120)}`;
    return new NotHeld(`${this.#way} should be ${expected} and ${is}; the answer: ${this.told}`);
  }
}

function isObject(value: Written | undefined): value is { [name: string]: Written } {
  const plain = typeof value === 'object' && value !== null && !Array.isArray(value);
  return plain && !(value instanceof WrittenNumber);
}
