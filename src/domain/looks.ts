/** Kinds of values that are probably personal, and what most people do with each. */
export const hintedActions = {
  email: 'hash',
  phone: 'hash',
  card: 'drop',
  ip: 'drop',
} as const satisfies Record<string, 'drop' | 'hash'>;
export type PersonalHint = keyof typeof hintedActions;
export const personalHints = Object.keys(hintedActions) as PersonalHint[];

/** Returns the line of a rules file that makes a property personal; null if it does not look so, or is no property. */
export function personalRule(becomes: string | null, hint: PersonalHint | null): string | null {
  const property = becomes?.startsWith('metadata.') === true ? becomes.slice('metadata.'.length) : null;
  if (property === null || hint === null) return null;
  const key = /^[A-Za-z_][\w.-]*$/.test(property) ? property : JSON.stringify(property);
  return `${key}: { personal: ${hintedActions[hint]} }`;
}
