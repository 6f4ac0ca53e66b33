/**
 * The gateway's paths in the document of the API. The gateway serves them itself, byte for byte, so
 * nothing is served or checked here.
 */
import { type RouteConfig, z } from '@hono/zod-openapi';
import {
  GATEWAY_PATHS,
  type GatewayPath,
  gatewayAnswerHeaders,
  gatewayHeaders,
  isOpen,
  queuedOperation,
  userKeyHeaders,
} from '../../resources/operations/gateway.ts';
import type { Api } from '../deps.ts';
import { problemResponse } from './problems.ts';
import { schemaOf } from './schemas.ts';

const PROBLEMS = {
  404: 'The path could be read as another one',
  408: 'The body did not arrive in time',
  413: 'The body is too large',
  421: 'This daemon does not have the role for this path',
  429: 'Too many requests, of the service or of the daemon; see Retry-After',
  500: 'Internal error of the daemon',
  502: 'The service was not reached; nothing was sent',
  503: 'Temporarily unavailable; see Retry-After',
  504: 'The answer of the service was lost',
};
const KEY_PROBLEMS = { 403: 'The key lacks the scope `gateway`, or a limit of it forbids this' };
const WRITE_PROBLEMS = {
  400: 'A header does not have the documented form',
  409: 'The state of the operation, of the wallet or of the idempotency key does not allow this',
  415: 'A body with a content encoding',
  422: 'The idempotency key was used for another request',
  504: 'The answer of the service was lost; the outcome is unknown',
};

const TYPES = { form: 'application/x-www-form-urlencoded', json: 'application/json' };

/** @param keyScheme the name of the security scheme of keys */
export function describeGateway({ openAPIRegistry }: Api, keyScheme: string): void {
  for (const path of GATEWAY_PATHS) openAPIRegistry.registerPath(configOf(path, keyScheme));
}

function configOf(path: GatewayPath, keyScheme: string): RouteConfig {
  const { params, query, body, kind } = path;
  const named = isOpen(path) ? {} : userKeyHeaders;
  const headers = { ...(kind ? gatewayHeaders : {}), ...named };
  return {
    method: path.method,
    path: path.path,
    operationId: `gateway_${kind ?? nameOf(path)}`,
    tags: ['gateway'],
    summary: path.summary,
    description: describe(path),
    security: isOpen(path) ? [] : [{ [keyScheme]: ['gateway'] }],
    request: {
      ...(params ? { params: schemaOf({ fields: params }) } : {}),
      ...(query ? { query: schemaOf({ fields: query }) } : {}),
      ...(Object.keys(headers).length > 0 ? { headers: schemaOf({ fields: headers }) } : {}),
      ...(body
        ? {
            body: {
              required: true,
              content: { [TYPES[body.type]]: { schema: schemaOf({ fields: body.fields }) } },
            },
          }
        : {}),
    },
    responses: responsesOf(path),
  };
}

/** `list` of `…/tokens`, `show` of `…/tokens/{tokenId}`, else its last words. */
function nameOf({ path }: GatewayPath): string {
  const words = path.split('/').filter((part) => !part.startsWith('{'));
  return `${words.slice(-1)[0]?.replaceAll('_', '-')}${path.endsWith('}') ? '_show' : ''}`;
}

function describe(path: GatewayPath): string {
  const { kind, needsUser, description } = path;
  return [
    kind && 'The write is recorded before it is sent.',
    needsUser && 'The service needs the token of a user in Authorization, and the key beside it.',
    description,
    'The answer is that of the service, byte for byte, also its refusals.',
    isOpen(path) ? 'Needs no key.' : 'Needs a key with the scope `gateway`.',
  ]
    .filter(Boolean)
    .join(' ');
}

function responsesOf(path: GatewayPath): RouteConfig['responses'] {
  const { kind, answer } = path;
  const refusal = schemaOf(path.refusal);
  const added = kind ? { headers: schemaOf({ fields: gatewayAnswerHeaders }) } : {};
  const one = (description: string, schema: z.ZodType) => ({
    description,
    content: { 'application/json': { schema } },
    ...added,
  });
  const problems = {
    ...PROBLEMS,
    ...(isOpen(path) ? {} : KEY_PROBLEMS),
    ...(kind ? WRITE_PROBLEMS : {}),
  };
  const answered = Object.entries(problems).map(([status, text]) => [
    status,
    problemResponse(text),
  ]);
  return {
    200: one(
      'What the service answered: what was asked for, or a refusal',
      z.union([schemaOf({ fields: answer }), refusal]),
    ),
    ...(kind ? { 202: one('The write was queued', schemaOf(queuedOperation)) } : {}),
    ...Object.fromEntries(answered),
    default: one('Any other answer of the service', refusal),
  };
}
