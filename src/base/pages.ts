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

export function nextOf<T, Place>(
  items: readonly T[],
  hasMore: boolean,
  placeOf: (last: T) => Place,
): Place | null {
  const last = items.at(-1);
  return hasMore && last !== undefined ? placeOf(last) : null;
}

/**
 * Returns the rows of a page and the place of the next page. `rows` has one row more than `limit`
 * if there is a next page.
 */
export function takePage<T, Place>(rows: readonly T[], limit: number, placeOf: (last: T) => Place) {
  const items = rows.slice(0, limit);
  return { items, next: nextOf(items, rows.length > limit, placeOf) };
}
