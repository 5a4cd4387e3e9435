/** Module that `tools/bundle-console.ts` generates from the registry of capabilities. */
declare module 'sluice:capabilities' {
  export const parts: readonly import('./part.ts').Part[];
}
