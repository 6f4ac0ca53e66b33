/**
 * The script of the report page: fetches the report with the key and shows it in a frame that may
 * run nothing. The other forms are handed over as files.
 */
import { KEY_SCRIPT } from './key.ts';

export const REPORT_SCRIPT = `'use strict';${KEY_SCRIPT}
const id = location.pathname.split('/').pop();
const path = '/api/reports/' + encodeURIComponent(id);
const save = async (format) => {
  const answer = await ask(path + '?format=' + format);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = id + '.' + format;
  link.click();
  URL.revokeObjectURL(link.href);
};
connect(async () => {
  const answer = await ask(path + '?format=html');
  at('report').srcdoc = await answer.text();
  at('report').hidden = false;
  for (const format of ['csv', 'json']) at(format).hidden = false;
});
for (const format of ['csv', 'json'])
  at(format).addEventListener('click', () => save(format).catch((error) => say(error.message)));
`;
