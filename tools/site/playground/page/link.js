// A design as the fragment of a link: JSON, compressed, in base64 for URLs. Fragments are not sent to servers.

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

export async function packed(design) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(design)));
  let letters = "";
  for (let from = 0; from < bytes.length; from += 4096) letters += String.fromCharCode(...bytes.subarray(from, from + 4096));
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// What a fragment holds; an error for one that is cut short or none.
export async function unpacked(fragment) {
  const letters = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = await through(new DecompressionStream("deflate-raw"), Uint8Array.from(letters, (letter) => letter.charCodeAt(0)));
  const found = JSON.parse(new TextDecoder().decode(bytes));
  if (typeof found?.text !== "string") throw new Error("it holds no design");
  return found;
}
