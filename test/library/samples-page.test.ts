/** docs/samples.md is written from the samples that the console shows. */
import { expect, it } from 'vitest';
import { SAMPLES } from '../../src/resources/delivery/samples.ts';

const HEADER = `# Receivers in six languages

Each is a whole receiver with the public library of
[Standard Webhooks](https://www.standardwebhooks.com) for its language. They verify \`v1\`
signatures (HMAC-SHA256) with the secret \`whsec_…\`; while a rotation overlaps, a delivery is
signed by the old and the new secret, so either verifies it. [tallyhook/receive](integrate.md)
also verifies \`v1a\` (ed25519), knows the types of events, drops repeated ones and tells their
order. In JavaScript, Python, Go and Java a test starts what stands here, lets a daemon rotate the
keys, and sends what must be refused.
`;

function pageText(): string {
  const parts = SAMPLES.map(({ language, file, install, start, code }) => {
    const fence = '```';
    const name = language.toLowerCase();
    return [
      `## ${language}\n`,
      `    ${install}\n    export WEBHOOK_SECRET=whsec_…\n    ${start}\n`,
      `\`${file}\`:\n\n${fence}${name}\n${code}${fence}\n`,
    ].join('\n');
  });
  return [HEADER, ...parts].join('\n');
}

it('The page of samples shows each as the console does', async () => {
  await expect(pageText()).toMatchFileSnapshot('../../docs/samples.md');
});
