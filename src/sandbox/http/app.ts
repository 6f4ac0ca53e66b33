/**
 * The HTTP side of the sandbox. Bodies are bounded and read whole before an endpoint runs.
 * Responses are written straight to the connection, because faults cut it. The date header shows
 * the world's time, so that equal worlds send equal bytes. There are no CORS headers.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import { after } from '../../kernel/clock.ts';
import type { Refusal } from '../../kernel/http/server.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import type { ControlSurface } from '../control/http.ts';
import type { Answer, Call } from '../endpoints/call.ts';
import { failure, internalError } from '../endpoints/errors.ts';
import { familyOf, ROUTES, type Route } from '../endpoints/routes.ts';
import type { PlannedResponse } from '../faults/faults.ts';
import type { World } from '../world.ts';
import type { Pipeline } from './pipeline.ts';

type Env = { Bindings: HttpBindings };
type Exchange = Context<Env>;

const BODY_MAX_BYTES = 2 ** 20;

/** Routes the paths of the service and of the control surface. */
export function buildApp(world: World, pipeline: Pipeline, control: ControlSurface, log?: Log) {
  const app = new Hono<Env>();
  const serve = (route: Route | undefined) => async (c: Exchange) => {
    const body = await readBody(c.env.incoming);
    if (body === undefined) return RESPONSE_ALREADY_SENT;
    const matched = isNormalised(c) ? route : undefined;
    if (body !== TOO_LARGE) return transmit(c, pipeline(callOf(c, matched, body), matched));
    return transmit(c, pipeline(callOf(c, matched, ''), tooLarge(c, matched)), true);
  };
  app.get('/_sandbox', (c) => send(c, control.page()));
  app.all('/_sandbox/*', async (c) => {
    const body = await readBody(c.env.incoming);
    if (body === undefined) return RESPONSE_ALREADY_SENT;
    const text = body === TOO_LARGE ? undefined : body;
    const type = c.req.header('content-type');
    const answer = control.answer(c.req.method, c.req.path, c.req.query(), type, text);
    return send(c, answer, body === TOO_LARGE);
  });
  for (const route of ROUTES) app.on(route.method, route.path, serve(route));
  app.notFound(serve(undefined) as (c: Context) => Promise<Response>);
  app.onError((error, c) => {
    log?.error({ err: error }, 'sandbox request failed');
    return send(c as Exchange, internalError(familyOf(c.req.path), world.switches()), true);
  });

  function send(c: Exchange, answer: Answer, close = false): Response {
    write(world, c.env.outgoing as ServerResponse, answer, close);
    return RESPONSE_ALREADY_SENT;
  }
  function transmit(c: Exchange, response: PlannedResponse, close = false): Response {
    const { answer, delayMs, sent, reset } = response;
    const outgoing = c.env.outgoing as ServerResponse;
    const act = () => {
      if (sent === 'all') write(world, outgoing, answer, close);
      else if (sent === 'half') writeHalf(world, outgoing, answer, reset);
      else cut(outgoing, reset);
    };
    if (delayMs === 0) act();
    else outgoing.once('close', after(delayMs, act));
    return RESPONSE_ALREADY_SENT;
  }
  return app;
}

/** The response to bytes that are not a readable request. */
export function unreadable(world: World, status: number): Refusal {
  const { headers, body } = failure('oauth', status);
  return { headers: fixedHeaders(world, headers, body), body };
}

/** Whether normalising leaves the path as it is: no dot segments, no backslashes. */
function isNormalised(c: Exchange): boolean {
  return (c.env.incoming.url ?? '').split('?')[0] === c.req.path;
}

function callOf(c: Exchange, route: Route | undefined, body: string): Call {
  const url = c.env.incoming.url ?? '';
  const mark = url.indexOf('?');
  return {
    endpoint: route?.name ?? 'absent',
    family: route?.family ?? familyOf(c.req.path),
    method: c.req.method,
    path: mark < 0 ? url : url.slice(0, mark),
    params: route ? c.req.param() : {},
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark)),
    authorization: c.env.incoming.headers.authorization,
    body,
    ageMs: 0,
    shift: 0,
  };
}

/** A route that refuses a body over the bound in the error shape of the matched endpoint. */
function tooLarge(c: Exchange, route: Route | undefined): Route {
  const family = route?.family ?? familyOf(c.req.path);
  const handle = () => failure(family, 413, 'The body is too large');
  return { name: route?.name ?? 'absent', family, method: 'POST', path: '', handle };
}

const TOO_LARGE = Symbol('too large');

/**
 * Reads the whole body as text; undefined when the client disconnected. An oversized body is read
 * on up to a second bound, so that the client receives the refusal.
 */
async function readBody(
  incoming: HttpBindings['incoming'],
): Promise<string | typeof TOO_LARGE | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of (incoming as IncomingMessage).iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size <= BODY_MAX_BYTES) chunks.push(chunk);
      if (size > 8 * BODY_MAX_BYTES) break;
    }
  } catch {
    return undefined;
  }
  return size > BODY_MAX_BYTES ? TOO_LARGE : Buffer.concat(chunks).toString('utf8');
}

function fixedHeaders(world: World, headers: Record<string, string>, body: string) {
  return {
    ...headers,
    date: new Date(world.now()).toUTCString(),
    'content-length': String(Buffer.byteLength(body)),
  };
}

function write(world: World, outgoing: ServerResponse, answer: Answer, close: boolean): void {
  const { status, headers, body } = answer;
  if (outgoing.destroyed || outgoing.headersSent) return;
  const fixed = fixedHeaders(world, headers, body);
  outgoing.writeHead(status, close ? { ...fixed, connection: 'close' } : fixed);
  outgoing.end(body);
}

function writeHalf(world: World, outgoing: ServerResponse, answer: Answer, reset: boolean): void {
  const { status, headers, body } = answer;
  const bytes = Buffer.from(body);
  outgoing.writeHead(status, fixedHeaders(world, headers, body));
  outgoing.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => cut(outgoing, reset));
}

function cut(outgoing: ServerResponse, reset: boolean): void {
  if (reset) outgoing.socket?.resetAndDestroy();
  else outgoing.destroy();
}
