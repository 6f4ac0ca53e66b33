/** An entry of the audit trail: who changed what through the API, and what came of it. */
import { id, instant, nullable, record, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const auditEntry = resource(
  'AuditEntry',
  {
    n: text('Entries are numbered in their order, with gaps'),
    at: instant(),
    owner: text(),
    key_id: id('key'),
    client_address: nullable(
      text('Where it came from, as http.trusted_proxies say', { title: 'From' }),
    ),
    action: text('Method and path, such as POST /api/freeze'),
    detail: record('What it names and asks for, without addresses, headers and secrets', {
      title: 'What',
    }),
    result: nullable(text('`done`, the code of a refusal, or null if its daemon ended meanwhile')),
  },
  { columns: ['at', 'owner', 'client_address', 'action', 'detail', 'result'] },
);
