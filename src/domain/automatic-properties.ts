/** Properties that are kept for every profile and that nobody can set: an export has them, a load takes no notice of them. */
export const automaticProperties = ['first_seen_at', 'last_seen_at'] as const;

const names: ReadonlySet<string> = new Set(automaticProperties);

export function isAutomaticProperty(name: string): boolean {
  return names.has(name);
}
