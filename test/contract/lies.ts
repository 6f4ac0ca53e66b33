/** Ways to be wrong. Each is one rewriting of what a right service is asked or tells. */
import type { Asked, Lie, Told } from './lying.ts';

const isAuthorization = (path: string) => path.startsWith('/v1/oauth');
const isTokenRequest = ({ path }: Asked) => path.startsWith('/v1/oauth/token');

/** Rewrites the body of every answer, but not of those that a statement only prepares with. */
const body =
  (rewrite: (text: string, asked: Asked) => string): NonNullable<Lie['told']> =>
  (told, asked) => ({ ...told, body: rewrite(told.body, asked) });

const refusedNft = '{"status":418,"error":[{"message":"no","field":"","validation":""}]}';

/** Whatever token comes, the one that was good for that endpoint before is used. */
function careless(): Lie {
  const good = new Map<string, string>();
  const endpoint = ({ method, path }: Asked) =>
    `${method} ${path.replace(/\/\d+/g, '').replace(/=.*/, '')}`;
  return {
    asked(asked) {
      const authorization = good.get(endpoint(asked));
      if (authorization === undefined || isAuthorization(asked.path)) return asked;
      return { ...asked, headers: { ...asked.headers, authorization } };
    },
    told(told, asked) {
      const { authorization } = asked.headers;
      const fine = told.status === 200 && told.body.includes('"data"');
      if (fine && authorization !== undefined && !good.has(endpoint(asked))) {
        good.set(endpoint(asked), authorization);
      }
      return told;
    },
  };
}

/** Answers to reads are those of the first time. */
function frozen(): Lie {
  const first = new Map<string, Told>();
  return {
    told(told, { method, path }) {
      if (method !== 'GET' || !path.includes('/v1/')) return told;
      const kept = first.get(path) ?? told;
      first.set(path, kept);
      return kept;
    },
  };
}

/** By what the service does wrong. Lies that make statements wait stand last. */
export const LIES: Record<string, () => Lie> = {
  'token records have no texts but the token': () => ({
    told: body((text, asked) =>
      isAuthorization(asked.path)
        ? text.replace(/"(?!access_token)(\w+)":"[^"]*"/g, '"$1":null')
        : text,
    ),
  }),
  'refusals of NFT endpoints have their own HTTP code': () => ({
    told: (told) => {
      const status = Number(/^\{"status":([45]\d\d),/.exec(told.body)?.[1] ?? told.status);
      return { ...told, status };
    },
  }),
  'every other HTTP code is 200': () => ({
    told: (told) => (told.status > 400 ? { ...told, status: 200 } : told),
  }),
  'errors have no status': () => ({
    told: body((text) => text.replace(/"status":"?\d+"?,"error"/, '"error"')),
  }),
  'error codes and details are others': () => ({
    told: body((text) =>
      text.replace(/"(code|detail)":"(\w+)"/g, (_, name, value) => `"${name}":"${value}0"`),
    ),
  }),
  'pages may be asked from browsers': () => ({
    told: (told) => ({
      ...told,
      headers: { ...told.headers, 'access-control-allow-origin': '*' },
    }),
  }),
  'the redirect goes elsewhere with nothing': () => ({
    told: (told) =>
      told.headers.location
        ? { ...told, headers: { location: 'https://elsewhere.example/?state=x' } }
        : told,
  }),
  'messages tell no figures': () => ({
    told: body((text) =>
      text.replace(/"message":"[^"]*"/g, '"message":"it did not work: :method"'),
    ),
  }),
  'a client token has a user': () => ({
    told: body((text, asked) =>
      asked.body.includes('client_credentials')
        ? text.replace('{', '{"refresh_token":"r","scope":"s","member_no":1,"nickname":"n",')
        : text,
    ),
  }),
  'client credentials are created, not answered': () => ({
    told: (told, asked) =>
      asked.body.includes('client_credentials') ? { ...told, status: 201 } : told,
  }),
  'a code is given without a login': () => ({
    told: (told, { method, path }) =>
      method === 'GET' && path.startsWith('/v1/oauth/authorize')
        ? { ...told, status: 302, headers: { location: 'https://app.example/?code=1' } }
        : told,
  }),
  'the maintenance status needs credentials': () => ({
    told: (told, { path }) => (path.startsWith('/v1/system') ? { ...told, status: 401 } : told),
  }),
  'tokens stay active for ever': () => ({
    told: body((text) => text.replace('"active":false', '"active":true')),
  }),
  'limits of length are one higher': () => ({
    asked: (asked) => ({
      ...asked,
      body: asked.body.replace(/x(%22%7D)/g, '$1'),
    }),
  }),
  'addresses and hashes lack a character': () => ({
    told: body((text) => text.replace(/"0x([0-9a-f]{39,})[0-9a-f]"/g, '"0x$1"')),
  }),
  'statuses are others': () => ({
    told: body((text) =>
      text
        .replace(/"status":"(\d+)"/g, '"status":"$10"')
        .replace(/"status":(\d)(?=[,}])/g, (_, digit) => `"status":${Number(digit) + 1}`)
        .replace(/"token_is_locked":(\d)/g, (_, digit) => `"token_is_locked":${1 - digit}`)
        .replace(/"(READY|INACTIVE)"/g, '"ACTIVE"'),
    ),
  }),
  'every refusal is a success': () => ({
    told: (told) => ({
      status: told.status >= 400 ? 200 : told.status,
      headers: told.headers,
      body: told.body.includes('"error"') ? '{"status":200,"data":{}}' : told.body,
    }),
  }),
  'texts are null': () => ({
    told: body((text, asked) =>
      isTokenRequest(asked) ? text : text.replace(/:"[^"]*"/g, ':null'),
    ),
  }),
  'integers are written with a fraction': () => ({
    told: body((text) => text.replace(/:(-?\d+)(?=[,}\]])/g, ':$1.0')),
  }),
  'integers are written as text': () => ({
    told: body((text) => text.replace(/:(-?\d+)(?=[,}\]])/g, ':"$1"')),
  }),
  'every request of base and transactions is refused': () => ({
    told: (told, { path }) =>
      isAuthorization(path) ? told : { ...told, status: 200, body: refusedNft },
  }),
  'every request of authorization is refused but client credentials': () => ({
    told: (told, asked) =>
      isAuthorization(asked.path) && !asked.body.includes('client_credentials')
        ? { ...told, status: 418, headers: {}, body: '{"no":true}' }
        : told,
  }),
  'integers beyond 2^53 lose digits': () => ({
    told: body((text) =>
      text.replace(/:(\d{16,})(?=[,}\]])/g, (_, digits) => `:${Number(digits)}`),
    ),
  }),
  'filters and pages are ignored': () => ({
    asked: (asked) => ({
      ...asked,
      path: asked.path.replace(/(\/tokens)\?.*/, '$1'),
    }),
  }),
  'data of mints is dropped': () => ({
    asked: (asked) => ({
      ...asked,
      body: asked.body
        .replace(/(metaData|extraData)=[^&]*/g, '$1=')
        .replace(/tokenURI=[^&]+/, 'tokenURI=x'),
    }),
  }),
  'no token is looked at': careless,
  'one token too many is moved': () => ({
    asked: (asked) => ({
      ...asked,
      body: asked.body.replace(/"amount":(\d+)/, (_, n) => `"amount":${BigInt(n) + 1n}`),
    }),
  }),
  'reads never change': frozen,
  'the client token is null': () => ({
    told: body((text, asked) =>
      asked.body.includes('client_credentials')
        ? text.replace(/"access_token":"[^"]*"/, '"access_token":null')
        : text,
    ),
  }),
};
