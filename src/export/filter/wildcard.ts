import type { Exclusion } from '../../domain/export.ts';
import { createGlob } from '../../domain/glob.ts';

/** What one kind of exclusion names: texts as they stand, and patterns in which `*` stands for any text. */
export interface LeftOut {
  readonly names: readonly string[];
  readonly patterns: readonly string[];
}

export function leftOut(exclusions: readonly Exclusion[], kind: Exclusion['kind']): LeftOut {
  const terms = exclusions.filter((exclusion) => exclusion.kind === kind).map(({ pattern }) => pattern);
  return {
    names: terms.filter((term) => !term.includes('*')),
    patterns: terms.filter((term) => term.includes('*')),
  };
}

/** A pattern as LIKE reads it. */
export function likePattern(pattern: string): string {
  return pattern.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%');
}

/** The same in JavaScript, for names of columns. */
export function nameTest({ names, patterns }: LeftOut): (name: string) => boolean {
  const exact = new Set(names);
  const globs = patterns.map((pattern) => createGlob(pattern));
  return (name) => exact.has(name) || globs.some((matches) => matches(name));
}
