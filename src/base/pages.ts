export async function* walkPages<Place, P extends { readonly next: Place | null }>(
  first: NoInfer<Place>,
  read: (after: Place) => Promise<P>,
): AsyncGenerator<P> {
  let after: Place = first;
  while (true) {
    const page = await read(after);
    yield page;
    if (page.next === null) return;
    after = page.next;
  }
}

/**
 * Returns the place of the last item, after which the next page begins. `null` on the last page.
 */
export function nextOf<T, Place>(
  items: readonly T[],
  hasMore: boolean,
  placeOf: (last: T) => Place,
): Place | null {
  const last = items.at(-1);
  return hasMore && last !== undefined ? placeOf(last) : null;
}

/** Returns the first `limit` rows as a page. If there are more rows, there is a next page. */
export function takePage<T, Place>(rows: readonly T[], limit: number, placeOf: (last: T) => Place) {
  const items = rows.slice(0, limit);
  return { items, next: nextOf(items, rows.length > limit, placeOf) };
}
