/** Says that an id belongs to a person. */
export interface Link {
  readonly alias: string;
  readonly userId: string;
}

/**
 * Says how far a link may go. `add`: it refuses an alias of another person. `merge`: that person becomes an alias too. `observe`, from an
 * SDK that saw both ids together: it also passes over a person who has aliases, since several people may share a device.
 */
export type Linking = 'add' | 'merge' | 'observe';

export type ShownLink = Link & { readonly linking: Linking };

export type LinkOutcome = 'made' | 'known' | 'taken' | 'suppressed';

export interface KnownIdentities {
  /** Persons by alias, of the ids that links name. */
  readonly persons: ReadonlyMap<string, string>;
  /** The ids among them that have aliases. */
  readonly owners: ReadonlySet<string>;
  /** The ids among them whose person is kept out. */
  readonly suppressed?: ReadonlySet<string>;
}

export interface NewAlias extends Link {
  /** The person whom it was given to; `userId` is the person whom that one belongs to after all links. */
  readonly givenTo: string;
}

export interface Linked {
  readonly outcomes: readonly LinkOutcome[];
  readonly aliases: readonly NewAlias[];
}

/**
 * Follows links one after another. An id belongs to at most one person, who is no alias: a person who becomes an alias takes their
 * aliases along, so there are neither chains nor cycles.
 */
export function link(links: readonly ShownLink[], { persons, owners, suppressed }: KnownIdentities): Linked {
  const given = new Map<string, string>();
  const own = new Set(owners);
  const personOf = (id: string): string => {
    const next = given.get(id) ?? persons.get(id);
    return next === undefined ? id : personOf(next);
  };
  const outcomes = links.map(({ alias, userId, linking }): LinkOutcome => {
    if (suppressed?.has(alias) || suppressed?.has(userId)) return 'suppressed';
    const [from, to] = [personOf(alias), personOf(userId)];
    if (from === to) return 'known';
    const isTaken = from !== alias || (linking === 'observe' && own.has(alias));
    if (isTaken && linking !== 'merge') return 'taken';
    given.set(from, to);
    own.add(to);
    return 'made';
  });
  const aliases = Array.from(given, ([alias, givenTo]) => ({ alias, givenTo, userId: personOf(alias) }));
  return { outcomes, aliases };
}
