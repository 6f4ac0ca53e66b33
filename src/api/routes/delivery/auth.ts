/** The form of what a request says of authentication to a receiver. */
import { z } from '@hono/zod-openapi';
import { CLIENT_AUTHENTICATIONS } from '../../../resources/delivery/auth.ts';
import { camelOf } from '../../../resources/fields.ts';
import type { EndpointInput } from '../../../webhooks/webhooks.ts';
import { pemInput, secretInput, textInput } from '../../http/schemas.ts';

const oauth2 = z.strictObject({
  token_url: textInput(2_048),
  client_id: textInput(1_024),
  client_secret: secretInput,
  scope: textInput(1_000).optional(),
  audience: textInput(1_000).optional(),
  client_authentication: z.enum(CLIENT_AUTHENTICATIONS).optional().openapi({
    description: 'Where the secret stands: in a header of the Basic scheme (default), or the body',
  }),
});
const tls = z.strictObject({
  certificate: pemInput.optional().openapi({
    description: 'PEM of the client certificate and those between it and its authority',
  }),
  private_key: pemInput.optional().openapi({
    description: 'PEM without a passphrase. Stored encrypted, never shown',
  }),
  ca: pemInput.optional().openapi({
    description: 'PEM of the authority of the receiver, if it is not a public one',
  }),
});

/** Of a request to create or change an endpoint. */
export const authInput = z
  .strictObject({
    oauth2: oauth2.optional().openapi({ description: 'A token by client credentials' }),
    tls: tls.optional().openapi({ description: 'A client certificate, authorities, or both' }),
  })
  .openapi('EndpointAuth', {
    description: 'How requests are authenticated beside headers; stored encrypted, never shown',
  });

/** As `webhooks` takes it. */
export function authOf(input: z.output<typeof authInput>): NonNullable<EndpointInput['auth']> {
  return Object.fromEntries(
    Object.entries(input).map(([name, part]) => {
      const given = Object.entries(part ?? {}).map(([key, value]) => [camelOf(key), value]);
      return [name, part && Object.fromEntries(given)];
    }),
  );
}
