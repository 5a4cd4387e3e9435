/** Looks of texts that say who somebody is, and what most people do with each. */
const usualActions = {
  email: 'hash',
  phone: 'hash',
  card: 'drop',
  ip: 'drop',
} as const satisfies Record<string, 'drop' | 'hash'>;
export type Look = keyof typeof usualActions;
export const looks = Object.keys(usualActions) as Look[];

/** Returns the line of a rules file that makes a property personal; null if it does not look so, or is no property. */
export function personalRule(becomes: string | null, look: Look | null): string | null {
  const property = becomes?.startsWith('metadata.') === true ? becomes.slice('metadata.'.length) : null;
  if (property === null || look === null) return null;
  const key = /^[A-Za-z_][\w.-]*$/.test(property) ? property : JSON.stringify(property);
  return `${key}: { personal: ${usualActions[look]} }`;
}
