/** Reads one page after another, from the place `first` to the last page. */
export async function* walkPages<Place, P extends { readonly next: Place | null }>(
  first: NoInfer<Place>,
  read: (after: Place) => Promise<P>,
): AsyncGenerator<P> {
  for (let after: Place = first; ; ) {
    const page = await read(after);
    yield page;
    if (page.next === null) return;
    after = page.next;
  }
}

/** Returns the place of the last item, behind which the next page begins, or `null` after the last page. */
export function nextOf<T, Place>(
  items: readonly T[],
  hasMore: boolean,
  placeOf: (last: T) => Place,
): Place | null {
  const last = items.at(-1);
  return hasMore && last !== undefined ? placeOf(last) : null;
}

/** Cuts a page from what was read, which is one item more if there is a next page. */
export function takePage<T, Place>(found: readonly T[], limit: number, placeOf: (last: T) => Place) {
  const items = found.slice(0, limit);
  return { items, next: nextOf(items, found.length > limit, placeOf) };
}
