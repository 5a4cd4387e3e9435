/** Module that `tools/bundle-console.ts` makes of the registry. */
declare module 'sluice:capabilities' {
  export const parts: readonly import('./part.ts').Part[];
}
