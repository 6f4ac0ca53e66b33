/**
 * The client of a daemon: its API under `/api`, and the service's own paths under `/v1`, which the
 * gateway records. Paths, parameters, bodies and answers have the types of the daemon's document.
 */
import createOpenapiClient, {
  type Client,
  defaultBodySerializer,
  type Middleware,
} from 'openapi-fetch';
import type { components, paths } from './schema.ts';

export type { components, paths };

export interface ClientOptions {
  /** Address of the daemon, with its base path if it has one. */
  url: string;
  /** `thk_…`; undefined, of a variable that is not set, is an error. */
  key: string | undefined;
  /**
   * Deadline of a request and its response; 60,000 by default, which is longer than a pull of the
   * feed waits. 0 means no deadline, such as for a stream.
   */
  timeoutMs?: number;
  /** Replaced in tests. */
  fetch?: (request: Request) => Promise<Response>;
}

export type TallyhookClient = Client<paths>;

const TIMEOUT_MS = 60_000;
/** The longest delay of a timer. */
const TIMEOUT_MAX_MS = 2_147_483_647;

/** @throws TypeError without a key, or with an address that is none */
export function makeClient(options: ClientOptions): TallyhookClient {
  const { url, key, timeoutMs = TIMEOUT_MS, fetch } = options;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new TypeError('url must be the address of a daemon, such as http://127.0.0.1:8080');
  if (!key?.startsWith('thk_'))
    throw new TypeError('key must be a key of the daemon, thk_…; is the variable set?');
  if (!(timeoutMs >= 0 && timeoutMs <= TIMEOUT_MAX_MS))
    throw new RangeError(`timeoutMs must be 0 to ${TIMEOUT_MAX_MS}`);
  const client = createOpenapiClient<paths>({
    baseUrl: url,
    // A redirect would send the key to another host.
    redirect: 'error',
    bodySerializer(body) {
      refuseInexact(body);
      return defaultBodySerializer(body);
    },
    ...(fetch ? { fetch } : {}),
  });
  client.use(exactParams, authorized(key), asForm, withDeadline(timeoutMs));
  return client;
}

/** A number that is not exact would be sent as another value. @throws RangeError */
function refuseInexact(input: unknown): void {
  JSON.stringify(input, (name, value: unknown) => {
    // Exact: a parameter holds its text, and the serializer of bodies refuses it.
    if (typeof value === 'bigint') return String(value);
    if (typeof value === 'number' && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER))
      throw new RangeError(`${name}: ${value} is no number that JavaScript holds exactly`);
    return value;
  });
}

/** The body is checked before it is serialized. */
const exactParams: Middleware = {
  onRequest: ({ params }) => refuseInexact(params),
};

/** Beside a token of the caller's own the key has a header of its own. */
function authorized(key: string): Middleware {
  return {
    onRequest({ request }) {
      if (request.headers.has('authorization')) request.headers.set('tallyhook-key', key);
      else request.headers.set('authorization', `Bearer ${key}`);
    },
  };
}

/** The service reads the bodies of these paths as forms. */
const FORMS = /^\/v1\/(?:chain|oauth)\//;

const asForm: Middleware = {
  async onRequest({ request, schemaPath }) {
    if (request.body === null || !FORMS.test(schemaPath)) return undefined;
    const members = Object.entries((await request.json()) as Record<string, unknown>);
    const fields = members.flatMap(([name, value]): [string, string][] => {
      if (typeof value === 'object' && value !== null)
        throw new TypeError(`${name}: a member of a form is a text, a number or a flag`);
      return value === null ? [] : [[name, String(value)]];
    });
    const { url, method, signal, redirect } = request;
    const headers = new Headers(request.headers);
    headers.set('content-type', 'application/x-www-form-urlencoded');
    return new Request(url, {
      method,
      headers,
      signal,
      redirect,
      body: new URLSearchParams(fields).toString(),
    });
  },
};

function withDeadline(timeoutMs: number): Middleware {
  return {
    onRequest({ request }) {
      if (timeoutMs === 0) return undefined;
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
      return new Request(request, { signal });
    },
  };
}
