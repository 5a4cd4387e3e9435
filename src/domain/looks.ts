/** Suggested actions for the kinds of values that can identify a person. */
const usualActions = {
  email: 'hash',
  phone: 'hash',
  card: 'drop',
  ip: 'drop',
} as const satisfies Record<string, 'drop' | 'hash'>;
export type Look = keyof typeof usualActions;
export const looks = Object.keys(usualActions) as Look[];

/**
 * Returns the line to add to the rules file, so that loads drop or hash this personal property.
 * Returns `null` if the column is not a property or not personal.
 */
export function personalRule(becomes: string | null, look: Look | null): string | null {
  const property = becomes?.startsWith('metadata.') === true ? becomes.slice('metadata.'.length) : null;
  if (property === null || look === null) return null;
  const key = /^[A-Za-z_][\w.-]*$/.test(property) ? property : JSON.stringify(property);
  return `${key}: { personal: ${usualActions[look]} }`;
}
