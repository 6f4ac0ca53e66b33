/** Script of the report page: shows the report in a sandboxed frame, and saves it as a file. */
import { KEY_SCRIPT } from './key.ts';

export const REPORT_SCRIPT = `'use strict';${KEY_SCRIPT}
const id = location.pathname.split('/').pop();
const path = '/api/reports/' + encodeURIComponent(id);
const save = async (format) => {
  const answer = await callApi(path + '?format=' + format);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = id + '.' + format;
  link.click();
  URL.revokeObjectURL(link.href);
};
connect(async () => {
  const answer = await callApi(path + '?format=html');
  at('report').srcdoc = await answer.text();
  at('report').hidden = false;
  for (const format of ['csv', 'json']) at(format).hidden = false;
});
for (const format of ['csv', 'json'])
  at(format).addEventListener('click', () =>
    save(format).catch((error) => showProblem(error.message)));
`;
