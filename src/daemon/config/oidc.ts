/** The schema of `console.oidc`. Pure. */
import { z } from 'zod';
import { SCOPES } from '../../resources/key.ts';

const text = z.string().min(1).max(200);
const PLAIN = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(\/|$)/;
const url = z.url().refine((value) => value.startsWith('https:') || PLAIN.test(value), {
  message: 'must begin with https://, or name this machine',
});

export const oidc = z.strictObject({
  issuer: url,
  client_id: text,
  redirect_url: url.refine((value) => value.endsWith('/sign-in/callback'), {
    message: 'must be the address of the console followed by /sign-in/callback',
  }),
  requested: z
    .array(text)
    .refine((names) => names.includes('openid'), { message: 'must include openid' })
    .default(['openid', 'email']),
  owner_claim: text.default('email'),
  groups_claim: text.default('groups'),
  groups: z.record(text, z.array(z.enum(SCOPES)).min(1)),
  key_hours: z.number().positive().max(168).default(12),
});
