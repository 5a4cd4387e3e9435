/** Returns why a text is no pattern that can be matched in linear time, or null. */
export function patternProblem(pattern: string): string | null {
  try {
    new RegExp(pattern, 'u');
    return null;
  } catch {
    return 'is no regular expression';
  }
}
