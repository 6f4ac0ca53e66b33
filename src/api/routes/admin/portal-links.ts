/** `/api/portal-links`: links that sign subscribers into their endpoints. */
import { z } from '@hono/zod-openapi';
import { DAY_MS } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import { ownOriginOf } from '../../../kernel/http/trusted-proxies.ts';
import { portalLink } from '../../../resources/admin/portal-link.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Router } from '../../http/router.ts';
import { instantInput, textInput } from '../../http/schemas.ts';

const DEFAULT_DAYS = 7;
const DAYS_MAX = 366;

const body = z.strictObject({
  owner: textInput(200).openapi({ description: 'The subscriber: whose endpoints it shows' }),
  expires_at: instantInput
    .optional()
    .openapi({ description: `By default after ${DEFAULT_DAYS} days; at most ${DAYS_MAX}` }),
});

export function addPortalLinks(
  router: Router,
  deps: Pick<ApiDeps, 'keys' | 'clock' | 'trusted' | 'basePath' | 'consoleUrl'>,
): void {
  const { keys, clock, trusted, basePath, consoleUrl } = deps;
  router.answer({
    tag: 'keys',
    scope: 'admin',
    method: 'post',
    path: '/api/portal-links',
    summary: 'Make a link with which a subscriber manages endpoints in the console',
    description:
      'The subscriber sees, makes and changes endpoints of that owner, their deliveries and ' +
      'replays, and nothing else. The link is a key with the scope `portal`: DELETE ' +
      '/api/keys/{id} ends it. It begins with the setting `reports.console_url`, or with the ' +
      'address of this request.',
    request: z.object({ body }),
    status: 201,
    response: 'The link',
    answer: portalLink,
    async handle({ body: { owner, expires_at } }, _, c) {
      const now = clock.now();
      const expiresAt = expires_at ?? now + DEFAULT_DAYS * DAY_MS;
      if (expiresAt > now + DAYS_MAX * DAY_MS)
        throw new Failure('invalid_request', `expires_at: at most ${DAYS_MAX} days from now`);
      const made = await keys.create({
        name: 'portal link',
        owner,
        scopes: ['portal'],
        expiresAt,
      });
      const base = consoleUrl ?? `${ownOriginOf(trusted, c)}${basePath}`;
      // What follows the # is sent to no server, so that no log has it.
      const url = `${base}/portal#${made.secret}`;
      return { id: made.key.id, owner: made.key.owner, url, expiresAt };
    },
  });
}
