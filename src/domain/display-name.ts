const separators = /[\s_.-]+/u;
/** Between `monthly` and `Active`, and between `API` and `Key`; a digit ends a word only before a capitalised one. */
const capitals = /(?<=[\p{Ll}\p{M}])(?=\p{Lu})|(?<=[\p{Lu}\p{N}])(?=\p{Lu}\p{Ll})/u;

/** What people are shown for a key: `subscription_tier` and `subscriptionTier` become `Subscription Tier`. */
export function displayName(key: string): string {
  const words = key.split(separators).flatMap((part) => (part === '' ? [] : part.split(capitals)));
  // A key of separators only has no words; in quotes it can at least be seen.
  return words.length === 0 ? JSON.stringify(key) : words.map(capitalise).join(' ');
}

function capitalise(word: string): string {
  const [first = ''] = word;
  return first.toUpperCase() + word.slice(first.length);
}
