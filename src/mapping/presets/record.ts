import type { Linking, ShownLink } from '../../domain/identities.ts';
import type { Reason } from '../../domain/reject.ts';
import { numberText, parseJsonText } from '../../formats/json-text.ts';
import { idProblem } from '../../validation.ts';

export interface PresetLink {
  readonly alias: unknown;
  readonly userId: unknown;
  readonly linking: Linking;
}

/** Returns the links of which both ids can be ids, and differ. */
export function readLinks(links: readonly PresetLink[] = []): ShownLink[] {
  return links.flatMap((link) => {
    const [alias, userId] = [idOf(link.alias), idOf(link.userId)];
    return alias === null || userId === null || alias === userId ? [] : [{ ...link, alias, userId }];
  });
}

/** Reads other ids of a user from a list, or its text as a cell has it; `column` has them. */
export function readAliases(value: unknown, userId: unknown, column: string): readonly ShownLink[] | Reason {
  const parsed = typeof value === 'string' ? parseJsonText(value) : { value };
  const ids = 'code' in parsed ? null : parsed.value;
  if (!Array.isArray(ids))
    return { code: 'invalid_type', message: `${column} must be a list of ids`, column };
  const own = idOf(userId);
  // What is wrong with it is said when the record is written.
  if (own === null) return [];
  const others = ids.filter((alias) => idOf(alias) !== own);
  const links = readLinks(others.map((alias) => ({ alias, userId, linking: 'add' })));
  if (links.length === others.length) return links;
  return { code: 'invalid_id', message: `${column} must be another id of the user`, column };
}

/** Returns the text of an id, or null if the value can be none. */
export function idOf(value: unknown): string | null {
  const id = numberText(value) ?? value;
  return typeof id === 'string' && idProblem(id) === null ? id : null;
}
