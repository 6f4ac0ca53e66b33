/** Whether a daemon runs and is ready, and the public keys of its webhooks. */

import { id, list, object, oneOf, optional, text } from '../fields.ts';
import { resource } from '../resource.ts';
import { ROLES } from './status.ts';

export const health = resource('Health', { status: oneOf(['ok']) });

export const readiness = resource('Readiness', {
  status: oneOf(['ok']),
  roles: list(oneOf(ROLES), 'What this daemon runs'),
  delivery: optional(
    oneOf(
      ['running', 'starting'],
      'The process that sends webhooks, of a daemon with that role; starting also after it ended',
    ),
  ),
});

export const webhookKeys = resource('WebhookKeys', {
  keys: list(object({ endpoint_id: id('ep'), public_key: text() })),
});
