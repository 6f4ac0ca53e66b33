/**
 * Defines routes. The OpenAPI entry of a route, the scope of its key, the validation of its request
 * and its handler stand in one definition, so the document describes exactly what is served. The
 * key is checked before anything else of a request is read.
 */
import { type RouteConfig, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Clock } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { incomingOf, type TrustedProxies } from '../../kernel/http/trusted-proxies.ts';
import { jsonText } from '../../kernel/json.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import {
  type AddressLimit,
  type Audit,
  type AuditEntry,
  type Caller,
  type Keys,
  makeAddressLimit,
  requireScope,
  type Sessions,
} from '../../keys/keys.ts';
import type { Scope } from '../../resources/admin/key.ts';
import type { Resource, Row, Shown } from '../../resources/resource.ts';
import { shower } from '../../resources/show.ts';
import type { Api } from '../deps.ts';
import { readJson } from './body.ts';
import { describeGateway } from './gateway.ts';
import { type ParsePosition, page, pageOf, readCursor } from './pages.ts';
import { invalidRequest, problemResponse, problemsOf, requestErrors } from './problems.ts';
import { originOf, schemaOf } from './schemas.ts';

/** The name of the security scheme in the document. */
const KEY_SCHEME = 'key';

/** The parts of the API, each with what it is about. */
export const TAGS = {
  operating: 'State of the daemon and of the service, settings, alerts, freezes',
  gateway: 'The paths of the service itself, served and recorded by the gateway',
  operations: 'Writes asked of the service, what became of them, and decisions by people',
  imports: 'Histories from files: checked, proved and recorded',
  watches: 'Wallets, contracts and tokens that are polled on request',
  wallets: 'What the ledger holds of wallets, and what observations show',
  tokens: 'NFTs: their holders and movements',
  ledger: 'Accounts, transactions and balances of the double-entry ledger',
  drifts: 'Differences between ledger and service that nothing explains, and how they end',
  operators: 'The wallets that operators pay from, and their mapping by two owners',
  events: 'What happened: the pull feed, and the bodies that webhooks carry',
  consumers: 'Named positions in the feed, kept for those who pull',
  endpoints: 'Receivers of webhooks',
  deliveries: 'Events sent to endpoints, each attempt, and replays',
  reports: 'Reconciliation reports and their files',
  periods: 'Closed periods and their sign-offs',
  keys: 'API keys, and the audit log of what they changed',
};

interface RouteBase<R extends z.ZodObject> {
  path: string;
  tag: keyof typeof TAGS;
  summary: string;
  description?: string;
  /** The parts that are validated: `params`, `query` and the JSON `body`. */
  request: R;
}

/** A key needs one of them. */
type Scopes = Scope | Scope[];

/** A route that answers a JSON document; without a schema it answers 204. */
interface Route<R extends z.ZodObject, S extends z.ZodType> extends RouteBase<R> {
  method: 'get' | 'post' | 'patch' | 'delete';
  scope: Scopes;
  /** A key with the scope `portal` may use it, too: it shows and changes only what is its own. */
  ownOnly?: true;
  status?: 200 | 201 | 202;
  /** What a successful response holds. */
  response: string;
  schema?: S;
  handle(input: z.output<R>, caller: Caller, c: Context): z.input<S> | Promise<z.input<S>>;
}

/** A route that answers one of a resource, of which the handler gives the row. */
interface ResourceRoute<R extends z.ZodObject, A extends Resource>
  extends Omit<Route<R, z.ZodType>, 'schema' | 'handle'> {
  answer: A;
  handle(
    input: z.output<R>,
    caller: Caller,
    c: Context,
  ): Row<NoInfer<A>> | Promise<Row<NoInfer<A>>>;
}

type Paged = { query: { limit: number; cursor?: string | undefined } };

/** A route that answers a page of a list of a resource. */
interface ListRoute<
  R extends z.ZodObject & z.ZodType<Paged>,
  A extends Resource,
  Listed extends Row<A>,
  Position,
> extends Omit<RouteBase<R>, 'description'> {
  scope: Scopes;
  ownOnly?: true;
  items: A;
  /** The rows after a position, in the order of the list. */
  list(
    input: z.output<R>,
    page: { after: Position | undefined; limit: number },
    caller: Caller,
  ): Promise<readonly Listed[]>;
  position(row: Listed): string | bigint;
  parsePosition: ParsePosition<Position>;
}

/** A route whose handler makes its own response, and that may be open to everyone. */
interface RawRoute<R extends z.ZodObject> extends RouteBase<R> {
  method: 'get' | 'post';
  scope?: Scope;
  /** A body that the handler reads itself, by content type. */
  content?: Record<string, { schema: z.ZodType }>;
  responses: RouteConfig['responses'];
  /** @param audit does work between the two commits of its audit entry */
  handle(
    input: z.output<R>,
    c: Context,
    caller: Caller | undefined,
    audit: AuditWork,
  ): Response | Promise<Response>;
}

/** @param body the fields of the audit entry */
export type AuditWork = <T>(body: object, work: () => Promise<T>) => Promise<T>;

export type Router = ReturnType<typeof makeRouter>;

interface RouterDeps {
  app: Api;
  keys: Pick<Keys, 'authenticate'>;
  sessions: Pick<Sessions, 'secretOf'>;
  audit: Pick<Audit, 'begin' | 'end'>;
  log: Log;
  /** Bound of every JSON body that a route describes. */
  bodyBytesMax: number;
  trusted: TrustedProxies;
  /** Measures the rate of requests without a key. */
  monotonic?: Clock | undefined;
}

const TOO_MANY = 'Too many requests; see Retry-After';
/** Requests to routes without a scope, per second and address. */
const OPEN_PER_S = 100;

export function makeRouter(routerDeps: RouterDeps) {
  const deps = { ...routerDeps, openLimit: makeAddressLimit(OPEN_PER_S, routerDeps.monotonic) };
  deps.app.openAPIRegistry.registerComponent('securitySchemes', KEY_SCHEME, {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key, thk_…; the role of an operation is the scope that the key must have',
  });
  describeGateway(deps.app, KEY_SCHEME);
  function add<R extends z.ZodObject, S extends z.ZodType>(route: Route<R, S>): void {
    const { method, request, schema, response, status = 200 } = route;
    const success = schema ? json(response, schema) : { description: response };
    const problems = problemsOf(method, 'body' in request.shape);
    const responses = { [schema ? status : 204]: success, ...problems };
    const config = { ...documented(route), method, request: requestConfig(request), responses };
    serve(deps, config, scopesOf(route), request, async (input, c, caller) => {
      if (!caller) throw new Failure('unauthorized');
      const work = async () => route.handle(input, caller, c);
      const by = { caller, c };
      const result = await (method === 'get' ? work() : audited(deps, route, input, by, work));
      return schema ? reply(c, jsonText(result), status) : c.body(null, 204);
    });
  }
  function answer<R extends z.ZodObject, A extends Resource>(route: ResourceRoute<R, A>): void {
    const show = shower(route.answer);
    add<R, z.ZodType<Shown<A>>>({
      ...route,
      schema: schemaOf(route.answer) as z.ZodType<Shown<A>>,
      handle: async (input, caller, c) => show(await route.handle(input, caller, c)),
    } as Route<R, z.ZodType<Shown<A>>>);
  }
  function listOf<
    R extends z.ZodObject & z.ZodType<Paged>,
    A extends Resource,
    Listed extends Row<A>,
    Position,
  >(route: ListRoute<R, A, Listed, Position>): void {
    const { path, tag, summary, request, scope, ownOnly, items } = route;
    const show = shower(items) as (row: Listed) => Shown<A>;
    add<R, z.ZodType>({
      method: 'get',
      path,
      tag,
      summary,
      request,
      scope,
      ...(ownOnly ? { ownOnly } : {}),
      response: 'A page of the list',
      schema: pageOf(schemaOf(items)),
      async handle(input, caller) {
        const { limit, cursor } = input.query;
        const after = readCursor(cursor, route.parsePosition);
        const rows = await route.list(input, { after, limit: limit + 1 }, caller);
        return page(rows, limit, show, route.position);
      },
    });
  }
  function raw<R extends z.ZodObject>(route: RawRoute<R>): void {
    const { method, scope, content, responses } = route;
    const body = content === undefined ? {} : { body: { required: true, content } };
    const request = { ...requestConfig(route.request), ...body };
    const config = { ...documented(route), method, request, responses };
    const scopes = scope === undefined ? [] : [scope];
    serve(deps, config, scopes, route.request, async (input, c, caller) =>
      route.handle(input, c, caller, (fields, work) =>
        caller ? audited(deps, route, { body: fields }, { caller, c }, work) : work(),
      ),
    );
  }
  /** Documents what a receiver of webhooks gets. */
  function webhook(
    name: string,
    summary: string,
    schema: z.ZodType,
    { since, example }: { since: string; example: object },
  ): void {
    deps.app.openAPIRegistry.registerWebhook({
      method: 'post',
      path: name,
      operationId: `receive_${name.replace('.', '_')}`,
      tags: ['events'],
      summary,
      description: `Since ${since}. Signed by Standard Webhooks; the signature replaces a key.`,
      security: [],
      request: { body: { required: true, content: { 'application/json': { schema, example } } } },
      responses: {
        '2XX': {
          description: 'The receiver has it, even if the body of its answer is late or cut',
        },
        default: { description: 'It is sent again later; after 410 the endpoint is disabled' },
      },
    });
  }
  return { add, answer, listOf, raw, webhook };
}

/** The fields of a request that its audit entry keeps; others may hold secrets. */
const AUDITED = [
  'id',
  'kind',
  'name',
  'owner',
  'scopes',
  'limits',
  'expires_at',
  'reason',
  'outcome',
  'n',
  'no',
  'event_types',
  'enabled',
  'from',
  'to',
  'contract_id',
  'token_id',
  'addr',
  'url',
  'ids',
  'assignee',
  'proposal',
  'operation_id',
  'sign_offs',
  'format',
  'reports',
  'dry_run',
  'since',
  'until',
  'which',
  'types',
  'held',
];

/** Does the work between the two commits of its audit entry. */
async function audited<T>(
  { audit, log, trusted }: RouterDeps,
  { method, path }: { method: string; path: string },
  { params = {}, body = {} }: { params?: object; body?: unknown },
  { caller, c }: { caller: Caller; c: Context },
  work: () => Promise<T>,
): Promise<T> {
  const fields = Object.entries({ ...(body as object), ...params });
  const kept = fields.filter(([name]) => AUDITED.includes(name));
  const detail = Object.fromEntries(
    kept.map(([name, value]) => [name, name === 'url' ? originOf(value) : value]),
  ) as AuditEntry['detail'];
  const action = `${method.toUpperCase()} ${path}`;
  const { owner, keyId } = caller;
  const clientAddress = addressOf({ trusted }, c) ?? null;
  const id = await audit.begin({ owner, keyId, clientAddress, action, detail });
  let result = 'internal';
  try {
    const done = await work();
    result = 'done';
    return done;
  } catch (error) {
    if (error instanceof Failure) result = error.code;
    throw error;
  } finally {
    await audit
      .end(id, result)
      .catch((err: unknown) => log.warn({ err, action }, 'audit not closed'));
  }
}

function scopesOf({ scope, ownOnly }: { scope: Scopes; ownOnly?: true }): Scope[] {
  return [scope, ownOnly ? ('portal' as const) : []].flat();
}

/**
 * Documents a route and serves it.
 * @param scopes of which a key must have one; empty for a route that is open to everyone
 */
function serve<R extends z.ZodObject>(
  deps: RouterDeps & { openLimit: AddressLimit },
  config: RouteConfig,
  scopes: readonly Scope[],
  schema: R,
  handle: (input: z.output<R>, c: Context, caller: Caller | undefined) => Promise<Response>,
): void {
  const { app, bodyBytesMax, openLimit, trusted } = deps;
  const [scope] = scopes;
  const named = scopes.map((one) => `\`${one}\``).join(' or ');
  const needed = scope ? `Needs a key with the scope ${named}.` : 'Needs no key.';
  app.openAPIRegistry.registerPath({
    ...config,
    description: [config.description, needed].filter(Boolean).join(' '),
    operationId: operationIdOf(config, schema),
    responses: { 429: problemResponse(TOO_MANY), ...config.responses },
    security: scopes.map((one) => ({ [KEY_SCHEME]: [one] })),
  });
  const path = config.path.replace(/\{(\w+)\}/g, ':$1');
  app.on(config.method.toUpperCase(), path, async (c) => {
    const address = () => addressOf({ trusted }, c);
    if (!scope) await openLimit.take(address());
    const caller = scope && (await authenticate(deps, c, address, [scope, ...scopes.slice(1)]));
    return handle(await readRequest(c, schema, bodyBytesMax), c, caller);
  });
}

function documented({ path, tag, summary, description }: RouteBase<z.ZodObject>) {
  return { path, tags: [tag], summary, ...(description === undefined ? {} : { description }) };
}

/** What a method does to one of a collection. */
const VERBS: Record<string, string> = { get: 'show', patch: 'update', delete: 'delete' };

/**
 * The name of an operation, by its place: `drifts_list`, `drifts_show`, `keys_create`,
 * `drifts_assign` of `POST /api/drifts/{id}/assign`, and `drifts_assign_many` of the same for many
 * ids. The commands of the command line have it too.
 */
function operationIdOf({ method, path }: RouteConfig, { shape }: z.ZodObject): string {
  const { query, body }: Parts = shape;
  const parts = path.replace(/^\/(?:api\/)?\.?/, '').split('/');
  const words = parts.filter((part) => !part.startsWith('{'));
  const names = words.map((part) => part.replaceAll(/[^a-z]/g, '-'));
  const isList = query !== undefined && 'cursor' in query.shape;
  const isMany = body instanceof z.ZodObject && 'ids' in body.shape;
  const isCollection = words.length === 1 && words[0]?.endsWith('s');
  if (isMany) names.push('many');
  else if (isList && words.length === 1) names.push('list');
  else if (parts.at(-1)?.startsWith('{')) names.push(VERBS[method] ?? method);
  else if (method === 'delete') names.push('delete');
  else if (words.length === 1 && method === 'get') names.push('show');
  else if (isCollection && method === 'post') names.push('create');
  return names.join('_');
}

type Parts = { params?: z.ZodObject; query?: z.ZodObject; body?: z.ZodType };

function requestConfig({ shape }: z.ZodObject): NonNullable<RouteConfig['request']> {
  const { params, query, body }: Parts = shape;
  return {
    ...(params ? { params } : {}),
    ...(query ? { query } : {}),
    ...(body
      ? { body: { required: !isOptional(body), content: { 'application/json': { schema: body } } } }
      : {}),
  };
}

function isOptional(body: z.ZodType): boolean {
  return body.safeParse(undefined).success;
}

async function authenticate(
  { keys, sessions }: Pick<RouterDeps, 'keys' | 'sessions'>,
  c: Context,
  address: () => string | undefined,
  scopes: readonly [Scope, ...Scope[]],
): Promise<Caller> {
  const caller = await keys.authenticate(sessions.secretOf(c), address);
  if (!caller) throw new Failure('unauthorized');
  requireScope(caller, ...scopes);
  return caller;
}

/** The address of the client; undefined for a request without a connection. */
function addressOf({ trusted }: Pick<RouterDeps, 'trusted'>, c: Context): string | undefined {
  const incoming = incomingOf(c);
  return incoming && trusted.addressOf(incoming);
}

/** @throws Failure `not_found` for a path that names no resource, else `invalid_request` */
async function readRequest<R extends z.ZodObject>(
  c: Context,
  schema: R,
  bodyBytesMax: number,
): Promise<z.output<R>> {
  const queries = Object.entries(c.req.queries());
  const { body }: Parts = schema.shape;
  const result = schema.safeParse({
    params: c.req.param(),
    query: Object.fromEntries(queries.map(([name, all]) => [name, all.length > 1 ? all : all[0]])),
    ...(body && !(isOptional(body) && isAbsent(c))
      ? { body: await readJson(c.req, bodyBytesMax) }
      : {}),
  });
  if (result.success) return result.data;
  if (result.error.issues.some(({ path }) => path[0] === 'params')) throw new Failure('not_found');
  throw invalidRequest(requestErrors(result.error));
}

/** True for a request without a body. */
function isAbsent(c: Context): boolean {
  const { headers } = c.req.raw;
  const length = Number(headers.get('content-length') ?? 0);
  return length === 0 && !headers.has('content-type') && !headers.has('transfer-encoding');
}

/** A JSON document as the response of a route. */
export function json<S extends z.ZodType>(description: string, schema: S) {
  return { description, content: { 'application/json': { schema } } };
}

/** Answers JSON text. */
export function reply(c: Context, text: string, status: 200 | 201 | 202 = 200): Response {
  return c.body(text, status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
}
