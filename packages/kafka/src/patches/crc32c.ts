// CRC-32C (Castagnoli), eight bytes at a time; kafkajs takes one.

const polynomial = 0x82f63b78

/** Table k gives the effect of a byte that is followed by k others. */
const tables: readonly Int32Array[] = (() => {
  const first = new Int32Array(256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
    first[byte] = crc
  }
  const all = [first]
  for (let k = 1; k < 8; k++) {
    const before = all[k - 1] ?? first
    all.push(before.map(crc => (crc >>> 8) ^ (first[crc & 0xff] ?? 0)))
  }
  return all
})()
const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
]

/** Unsigned CRC-32C of `bytes` from `start` to its end. */
export function crc32c(bytes: Buffer, start = 0): number {
  // Indexes stay in range: `as number` only tells the compiler so, and a check per byte would cost what this saves.
  const at = (table: Int32Array, index: number) => table[index & 0xff] as number
  const byte = (index: number) => bytes[index] as number
  let crc = -1
  let i = start
  for (const end = bytes.length - 7; i < end; i += 8) {
    crc ^= byte(i) | (byte(i + 1) << 8) | (byte(i + 2) << 16) | (byte(i + 3) << 24)
    crc =
      at(t7, crc) ^
      at(t6, crc >>> 8) ^
      at(t5, crc >>> 16) ^
      at(t4, crc >>> 24) ^
      at(t3, byte(i + 4)) ^
      at(t2, byte(i + 5)) ^
      at(t1, byte(i + 6)) ^
      at(t0, byte(i + 7))
  }
  for (; i < bytes.length; i++) crc = at(t0, crc ^ byte(i)) ^ (crc >>> 8)
  return ~crc >>> 0
}
