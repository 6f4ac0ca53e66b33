/** Values as the text of a cell. */

/**
 * Empty for what is not there; a list of texts in one cell, anything else as JSON.
 * @param json writes it; another one where numbers were read without loss
 */
export function cellText(value: unknown, json: (value: object) => string = JSON.stringify): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'object') return String(value);
  const isTexts = Array.isArray(value) && value.every((one) => typeof one !== 'object');
  return isTexts ? value.join(' ') : json(value);
}
