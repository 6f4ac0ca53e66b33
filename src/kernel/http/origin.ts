/** The origin of any URL, also of one that `URL` gives none, such as `kafka://host:9092/topic`. */
export function originOf(text: string | URL): string {
  const { origin, protocol, host } = new URL(text);
  return origin === 'null' ? `${protocol}//${host}` : origin;
}
